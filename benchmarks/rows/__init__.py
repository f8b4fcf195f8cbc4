# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All rows, in the order of the files and in theirs."""

import importlib

FILES = ("dispatch", "work")


def all_rows():
    rows = []
    for name in FILES:
        try:
            rows += importlib.import_module(f"rows.{name}").ROWS
        except ModuleNotFoundError as missing:
            if missing.name != f"rows.{name}":
                raise
    for row in rows:
        row.check()
    return rows

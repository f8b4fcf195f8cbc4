# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_report.py CSV JSON: fails unless both say the same, each field once, and the efficiencies are what they are."""
import csv
import json
import sys


def no_twins(pairs):
    assert len(dict(pairs)) == len(pairs), f"a name twice: {pairs}"
    return dict(pairs)


with open(sys.argv[1], newline="", encoding="utf-8") as file:
    text = file.read()
assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n"), "RFC 4180 ends lines with CRLF"
rows = list(csv.DictReader(text.splitlines(), strict=True))
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file, object_pairs_hook=no_twins, parse_constant=lambda word: sys.exit(f"{word} is not JSON"))

assert len(rows) == len(report["devices"]) > 0
for row, device in zip(rows, report["devices"]):
    assert list(row) == list(device), f"{list(row)} and {list(device)}"
    for name, cell in row.items():
        value = device[name]
        assert cell == value if name == "device" else float(cell) == value, f"{name}: {cell} and {value}"

useful = [device["forward_seconds"] + device["wait_seconds"] for device in report["devices"]]
mean, most, seconds = sum(useful) / len(useful), max(useful), report["seconds"]
assert abs(seconds - report["plan_seconds"] - report["shards_seconds"] - report["gather_seconds"]) <= 1e-12 * seconds


def check(name, expected):
    assert abs(report[name] - expected) <= 1e-12 * expected, f"{name}: {report[name]}, expected {expected}"


check("load_balance", mean / most)
check("communication_efficiency", most / seconds)
check("parallel_efficiency", report["load_balance"] * report["communication_efficiency"])

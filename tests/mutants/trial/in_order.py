# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several calls at once, whose results come in the order of their arguments."""

import collections
import concurrent.futures

AHEAD = 64  # calls, so that a slow one at the front does not keep the others waiting


def in_order(call, items, jobs, ahead=lambda: AHEAD):
    """Yields each item with `call(item)`; `jobs` calls run at once. Raises what a call raises.

    At most `ahead()` calls run, wait to run, or wait to be yielded. If the caller stops early, those that run are waited
    for."""
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    begun = collections.deque()

    def first():
        item, result = begun.popleft()
        return item, result.result()

    try:
        for item in items:
            while begun and len(begun) >= ahead():
                yield first()
            begun.append((item, pool.submit(call, item)))
        while begun:
            yield first()
    finally:
        pool.shutdown(cancel_futures=True)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several calls at once, whose results come in the order of their arguments."""

import collections
import concurrent.futures

AHEAD = 32  # calls for each job, so that a slow one at the front does not keep the others waiting


def in_order(call, items, jobs):
    """Yields each item with `call(item)`; `jobs` calls run at once. Raises what a call raises. If the caller stops
    early, the calls that run are waited for."""
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    begun = collections.deque()
    try:
        for item in items:
            begun.append((item, pool.submit(call, item)))
            if len(begun) == AHEAD * jobs:
                item, result = begun.popleft()
                yield item, result.result()
        while begun:
            item, result = begun.popleft()
            yield item, result.result()
    finally:
        pool.shutdown(cancel_futures=True)

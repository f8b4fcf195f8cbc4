# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs slices in turns. What a slice is, and which of them count, says benchmarks/README.md."""

import json
import os
import random
import subprocess
import time

FOREIGN_LIMIT = 0.05  # of one core
REQUIRED = ("contender", "case", "median_ns", "p10_ns", "p90_ns", "p99_ns", "mean_ns", "samples", "cpu_s", "wall_s",
            "foreign_cpu", "timer_ns", "two_threads")


class Absent(Exception):
    """A contender that cannot take part here, and why."""


class Fault(Exception):
    """A program that failed."""


def run_slice(folder, program, case, keys, timeout=60):
    """What one slice says. Raises Absent or Fault."""
    path = os.path.join(folder, program)
    if not os.path.exists(path):
        raise Absent("not built")
    command = [path, case] + [f"{key}={value}" for key, value in keys.items()]
    said = " ".join([program] + command[1:])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Fault(f"{said}: not done after {timeout} s")
    if done.returncode == 77:
        raise Absent(done.stderr.strip().removeprefix("skipped: "))
    if done.returncode != 0:
        raise Fault(f"{said}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise Fault(f"{said}: expected one line of JSON, found: {done.stdout.strip()[-300:]}")
    missing = [key for key in REQUIRED if key not in result]
    if missing:
        raise Fault(f"{said}: its JSON lacks {', '.join(missing)}")
    return result


class Patience:
    """How often slices are repeated because others used the machine: so often each, and so long in all, with pauses,
    since others mostly use it for some seconds."""

    def __init__(self, times=3, seconds=60):
        self.times = times
        self.seconds = seconds

    def quiet(self, slice_once):
        """The first slice without foreign load, else the one with the least. Each says then whether it was disturbed."""
        best = None
        for attempt in range(1 + self.times):
            begin = time.monotonic()
            if attempt > 0:
                time.sleep(min(attempt, self.seconds))
            result = slice_once()
            result["disturbed"] = result["foreign_cpu"] > FOREIGN_LIMIT
            if best is None or result["foreign_cpu"] < best["foreign_cpu"]:
                best = result
            if not result["disturbed"]:
                break
            self.seconds -= time.monotonic() - begin
            if self.seconds <= 0:
                break
        return best


class Measured:
    """What the contenders of one variant of a row said: results[contender] is a list with one result for each round."""

    def __init__(self, row, variant):
        self.row = row
        self.variant = variant
        self.results = {}
        self.absent = {}
        self.faults = {}


def measure(row, variant, run, rounds, patience, full=False, scale=1.0):
    """`run(contender, keys)` is one slice. Who is absent or fails in one round takes no part in the others."""
    measured = Measured(row, variant)
    taking_part = [c for c in row.contenders if (not c.only or variant in c.only) and (full or not c.full_only)]
    # The same orders in each run of the program, but not the same in all rows.
    shuffle = random.Random(f"{row.number} {variant}").shuffle
    for _ in range(rounds):
        shuffle(taking_part)
        for contender in list(taking_part):
            keys = {**row.keys, **row.variants[variant], **contender.keys}
            keys["seconds"] = round(float(keys.get("seconds", 0.3)) * scale, 3)
            try:
                result = patience.quiet(lambda: run(contender, keys))
            except (Absent, Fault) as why:
                kind = measured.absent if isinstance(why, Absent) else measured.faults
                kind[contender.name] = str(why)
                taking_part.remove(contender)
                measured.results.pop(contender.name, None)
                continue
            measured.results.setdefault(contender.name, []).append(result)
    return measured

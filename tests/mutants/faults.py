# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bash tests/mutants/run [--named] [--check] [--part K/N] [--jobs N] [NAME...]

Puts the faults of faults.txt (or those named) into the library, one at a time. Fails if the tests do not find one of
them. A fault is found if a file of tests compiles, ends and passes without the fault, but not with it. The files that
faults.txt names are tried first, then all others. A run of all faults writes result.txt. A run that was interrupted
continues where it ended: a verdict stays valid until a file that it depends on changes.
"""

import argparse
import datetime
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from trial.change import Wrong, read  # noqa: E402
from trial.in_order import in_order  # noqa: E402
from trial.trial import Trial  # noqa: E402

FAULTS = os.path.join(HERE, "faults.txt")
EQUIVALENT = os.path.join(HERE, "equivalent.txt")
RESULT = os.path.join(HERE, "result.txt")


def part(text):
    first, _, step = text.partition("/")
    return slice(int(first) - 1, None, int(step))


def options():
    parser = argparse.ArgumentParser(prog="run", description=__doc__.split("\n\n")[1])
    parser.add_argument("--named", action="store_true", help="try only the files of tests that faults.txt names")
    parser.add_argument("--check", action="store_true",
                        help="only check that each change can be applied and each fault has a result")
    parser.add_argument("--part", metavar="K/N", type=part, default=slice(None),
                        help="only every Nth fault, from the Kth on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tries at once (default: one per core)")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args()


def check(faults):
    """Raises Wrong if a change cannot be applied or a fault has no result. Returns a line for the terminal."""
    equivalent = read(EQUIVALENT)
    for change in faults + equivalent:
        change.put_into(ROOT)
    with open(RESULT, encoding="utf-8") as file:
        results = [line.split()[0] for line in file.read().partition("\n\n")[2].splitlines()]
    for name in sorted({fault.name for fault in faults} ^ set(results)):
        raise Wrong(f"{name} is not in both faults.txt and result.txt; run `bash tests/mutants/run`")
    return f"{len(faults)} faults and {len(equivalent)} equivalent mutants can be applied"


def write(trial, lines, found):
    def git(*command):
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    tree = git("rev-parse", "--short", "HEAD:include")
    with open(RESULT, "w", encoding="utf-8") as file:
        file.write(f"{datetime.date.today()}, include/ as of `git rev-parse HEAD:include` {tree}, "
                   f"{trial.build.version.splitlines()[0]}\n"
                   f"{len(lines)} faults, of which the tests found {found}; by which file, and which of its cases:\n\n")
        file.writelines(line + "\n" for line in lines)


def main():
    asked = options()
    faults = read(FAULTS)
    if asked.check:
        print(check(faults))
        return 0
    unknown = set(asked.names) - {fault.name for fault in faults}
    if unknown:
        raise Wrong(f"there is no fault {' and no '.join(sorted(unknown))}")
    chosen = [fault for fault in faults if not asked.names or fault.name in asked.names][asked.part]
    for fault in chosen:
        fault.put_into(ROOT)
    trial = Trial(ROOT, os.environ.get("CXX", "clang++-16"))
    lines, found = [], 0
    tried = [fault for fault in chosen if trial.can_try(fault)]
    left_out = len(chosen) - len(tried)
    for fault in chosen:
        if fault not in tried:
            print(f"{fault.name:24} is left out: the headers of CUDA or NCCL are missing", flush=True)
    for fault, verdict in in_order(lambda fault: trial.judge(fault, named_only=asked.named), tried, asked.jobs):
        found += verdict.found
        lines.append(f"{fault.name:24} {verdict}")
        print(lines[-1], flush=True)
    if len(lines) == len(faults):
        write(trial, lines, found)
    lives = len(lines) - found
    print(f"{len(lines)} faults, {lives} of them not found" + f", {left_out} left out" * (left_out > 0))
    return 1 if lives else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        sys.exit(str(wrong))

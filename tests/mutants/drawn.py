# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bash tests/mutants/draw [--count N] [--seed N] [--room ROOM] [--jobs N]

Draws mutants of the headers at random, from all that universalmutator makes, and tries the tests on each. Tests should
find 90 %. Fails if they find less than that by more than chance explains: two standard deviations of the share, which
are 11 % of 30 mutants and 4 % of 200. A mutant counts if its header still compiles by itself. Not counted: mutants that change
only a comment, that do not change the code of the nearest tests, or that equivalent.txt lists. Headers in adapt/ are
left out, since they need other libraries.

Writes build/mutants/SEED.txt. The same seed draws the same mutants as long as no header changes.
"""

import argparse
import collections
import contextlib
import dataclasses
import glob
import io
import math
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from universalmutator.mutator import mutants_regexp  # noqa: E402

from trial.change import Wrong, read  # noqa: E402
from trial.command import processor_seconds  # noqa: E402
from trial.in_order import AHEAD, in_order  # noqa: E402
from trial.trial import Trial  # noqa: E402

EQUIVALENT = os.path.join(HERE, "equivalent.txt")
RULES = ["universal.rules", "c_like.rules", "cpp.rules"]
COMMENT = re.compile(r"//.*|/\*.*?\*/")
GOAL = 0.9
WORDS = ("fails", "does not compile", "does not end")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A line and its replacement. Can be tried like a Change."""

    file: str
    line: int  # from 1
    before: str
    after: str
    tests = ()
    under = ""

    @property
    def room(self):
        folders = self.file.split("/")[2:-1]
        return folders[0] if folders else "top"

    def put_into(self, root):
        with open(os.path.join(root, self.file), encoding="utf-8") as file:
            lines = file.readlines()
        lines[self.line - 1] = self.after
        return "".join(lines)

    def __str__(self):
        after = self.after.rstrip().replace("\n", "\n  +")
        return f"{self.file}:{self.line}\n  -{self.before.rstrip()}\n  +{after}"


def all_mutants(room):
    mutants = []
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "fanout", "**", "*.[hi]pp"), recursive=True)):
        name = os.path.relpath(path, ROOT)
        if name.startswith("include/fanout/adapt/"):
            continue
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        with contextlib.redirect_stdout(io.StringIO()):  # it says which rules it has
            made = mutants_regexp(lines, RULES, ignorePatterns=[])
        mutants += [Mutant(name, line, lines[line - 1], after) for line, after, *_ in made]
    return [mutant for mutant in mutants if room in (None, mutant.room) and bare(mutant.before) != bare(mutant.after)]


def bare(line):
    return COMMENT.sub("", line).split()


def known_equivalent():
    """Returns the files that the mutants of equivalent.txt make. Says which of them no longer fit the headers."""
    files = set()
    for change in read(EQUIVALENT):
        try:
            files.add((change.file, change.put_into(ROOT)))
        except Wrong as stale:
            print(f"equivalent.txt, left out: {stale}")
    return files


def draw(trial, mutants, count, jobs):
    """Yields each mutant drawn with its verdict, or the reason why it is none, until `count` mutants count."""
    equivalent = known_equivalent()

    def judge(mutant):
        if (mutant.file, mutant.put_into(ROOT)) in equivalent:
            return "is equivalent"
        if not trial.stands_alone(mutant):
            return "does not stand alone"
        return trial.judge(mutant, leave_out_same_code=True)

    # Begins no more than may count: one that is not needed any more takes minutes.
    for mutant, said in in_order(judge, mutants, jobs, lambda: min(count, AHEAD)):
        yield mutant, said
        count -= not isinstance(said, str) and said.how != "same code"
        if count == 0:
            return


def table(verdicts):
    """Returns the numbers by room: mutants drawn, found, and how they were found."""
    rooms = sorted({mutant.room for mutant, _ in verdicts})
    lines = [f"{'room':10}{'drawn':>8}{'found':>8}" + "".join(f"{how:>18}" for how in WORDS) + f"{'share':>8}"]
    for room in rooms + ["all rooms"]:
        hows = collections.Counter(said.how for mutant, said in verdicts if room in (mutant.room, "all rooms"))
        drawn = hows.total()
        found = drawn - hows["lives"]
        columns = "".join(f"{hows[how]:18}" for how in WORDS)
        lines.append(f"{room:10}{drawn:8}{found:8}{columns}{found / drawn:8.1%}")
    return "\n".join(lines) + "\n"


def options():
    parser = argparse.ArgumentParser(prog="draw", description=__doc__.split("\n\n")[1])
    parser.add_argument("--count", type=int, default=30, help="number of mutants (default: 30)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="seed of the draw (default: random)")
    parser.add_argument("--room", help="a folder of include/fanout")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tries at once (default: one per core)")
    return parser.parse_args()


def least_share(count):
    return GOAL - 2 * math.sqrt(GOAL * (1 - GOAL) / count)


def main():
    asked = options()
    mutants = all_mutants(asked.room)
    if not mutants:
        raise Wrong(f"there is no room {asked.room}")
    print(f"seed {asked.seed}, {len(mutants)} mutants to draw from", flush=True)
    random.Random(asked.seed).shuffle(mutants)
    trial = Trial(ROOT, os.environ.get("CXX", "clang++-16"))
    verdicts, left_out = [], collections.Counter()
    same = []
    for mutant, said in draw(trial, mutants, asked.count, asked.jobs):
        if isinstance(said, str):
            left_out[said] += 1
            continue
        print(f"{mutant.file}:{mutant.line}: {said}", flush=True)
        if said.how == "same code":
            left_out["leaves the code as it is"] += 1
            same.append(mutant)
        else:
            verdicts.append((mutant, said))
    lives = [mutant for mutant, said in verdicts if said.how == "lives"]
    share = 1 - len(lives) / len(verdicts)
    report = f"\nseed {asked.seed}\n" + table(verdicts)
    report += "left out: " + ", ".join(f"{number} {why}" for why, number in left_out.items()) + "\n"
    report += f"{processor_seconds() / len(verdicts):.1f} processor seconds for each mutant\n"
    report += "".join(f"\nlives: {mutant}\n" for mutant in lives)
    print(report, end="")
    with open(os.path.join(trial.build.folder, f"{asked.seed}.txt"), "w", encoding="utf-8") as file:
        file.write(report.lstrip())
        file.writelines(f"\nleaves the code as it is: {mutant}\n" for mutant in same)
        file.writelines(f"\n{said}: {mutant}\n" for mutant, said in verdicts if said.found)
    return 0 if share >= least_share(len(verdicts)) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        sys.exit(str(wrong))

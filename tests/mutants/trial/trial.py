# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tries changes on the tests.

A changed header is written into a folder that the compiler searches before include/. Each file of tests is compiled
with it. If the object file is the same as without the change, its tests cannot notice the change and are not run.
Verdicts are kept in build/mutants/known.json until a file that they depend on changes.
"""

import contextlib
import dataclasses
import json
import os
import tempfile
import threading

from .build import Build
from .change import Wrong

WITNESSES = 12  # if a change leaves the code of so many units as it is, it is taken to do so everywhere
OPTIMISED_WITNESSES = 4


@dataclasses.dataclass(frozen=True)
class Verdict:
    how: str  # "fails", "does not compile", "does not end", "lives" or "same code"
    unit: str = ""
    what: str = ""

    @property
    def found(self):
        return self.how not in ("lives", "same code")

    def __str__(self):
        return f"{self.unit}: {self.what}" if self.found else self.how.upper()


class Trial:
    def __init__(self, root, compiler):
        self.root = root
        self.build = Build(root, compiler)
        self.suite = self.build.suite
        self.known_file = os.path.join(self.build.folder, "known.json")
        self.known = {}
        self.noting = threading.Lock()
        if os.path.exists(self.known_file):
            with open(self.known_file, encoding="utf-8") as file:
                self.known = json.load(file)

    def judge(self, change, leave_out_same_code=False, named_only=False):
        """Tries the change on the tests, those that it names first, until one fails. With `leave_out_same_code`, the
        verdict on a change without effect on the code is "same code", not "lives"."""
        changed = change.put_into(self.root)
        units = self.units(change, named_only)
        key = self.build.sum(change.file, changed, change.under, leave_out_same_code, named_only)
        if key in self.known:
            *said, digest = self.known[key]
            verdict = Verdict(*said)
            if digest == self.digest(verdict, units):
                return verdict
        with self.changed(change.file, changed) as scratch:
            bodies_alone = change.file.endswith(".ipp")
            verdict = self.try_units(units, scratch, change.under, leave_out_same_code, bodies_alone)
        with self.noting:
            self.known[key] = [verdict.how, verdict.unit, verdict.what, self.digest(verdict, units)]
            with open(self.known_file + ".new", "w", encoding="utf-8") as file:
                json.dump(self.known, file, indent=0)
            os.replace(self.known_file + ".new", self.known_file)
        return verdict

    def stands_alone(self, change):
        """True if the changed header compiles by itself."""
        with self.changed(change.file, change.put_into(self.root)) as scratch:
            return self.build.stands_alone(change.file, scratch)

    @contextlib.contextmanager
    def changed(self, file, text):
        """A folder that has the file with this text, for as long as the context lasts."""
        with tempfile.TemporaryDirectory(dir=self.build.folder) as folder:
            path = os.path.join(folder, file)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as changed:
                changed.write(text)
            yield folder

    def digest(self, verdict, units):
        """Returns a hash of all that the verdict depends on."""
        decided = [self.suite.units[verdict.unit]] if verdict.found and verdict.unit in self.suite.units else units
        return self.build.sum(*[self.build.digest(unit) for unit in decided])

    def can_try(self, change):
        """True if the tests that it names can be built here. Raises Wrong if there is no such file."""
        for name in change.tests:
            if not os.path.exists(os.path.join(self.root, "tests", f"{name}.cpp")):
                raise Wrong(f"{change.name}: there is no file of tests {name}")
        return all(name in self.suite.units for name in change.tests)

    def units(self, change, named_only):
        named = [self.suite.units[name] for name in change.tests]
        others = [unit for unit in self.suite.order(change.file) if unit not in named]
        if change.under:
            others = [unit for unit in others if unit.kind == named[0].kind]
        return named + others * (not named_only)

    def try_units(self, units, scratch, under, leave_out_same_code, bodies_alone):
        """`bodies_alone`: the change is in an .ipp, which no unit includes."""
        tried, changed, same = 0, [], False
        for unit in units:
            if same and not unit.refused:
                continue
            verdict = self.refuse(unit, scratch) if unit.refused else self.attempt(unit, scratch, under, bodies_alone)
            if verdict.found:
                return verdict
            if not unit.refused:
                tried += 1
                changed += [unit] if verdict.how == "lives" else []
                same = leave_out_same_code and tried == WITNESSES and self.same_optimised(changed, scratch, bodies_alone)
        if leave_out_same_code and 0 < tried < WITNESSES:
            same = self.same_optimised(changed, scratch, bodies_alone)
        return Verdict("same code" if same else "lives")

    def attempt(self, unit, scratch, under, bodies_alone):
        before = self.build.without_change(unit, under)
        if before.program is None:  # it would fail with any change, too
            return Verdict("same code")
        bodies = self.build.bodies(unit, under, scratch)
        if bodies is None:
            return Verdict("does not compile", unit.name, "bodies do not compile")
        object = before.program + ".o"
        if not bodies_alone:
            object = os.path.join(scratch, "changed.o")
            status, said = self.build.compile(unit, object, under, scratch)
            if status != 0:
                error = first_error(said)
                how = "fails" if error.startswith("static") else "does not compile"  # a static_assert is a test
                return Verdict(how, unit.name, f"does not compile: {error}")
        if contents(object) == before.object and all(map(same_bytes, bodies, self.build.bodies(unit, under))):
            return Verdict("same code")
        if not self.suite.runs(unit):
            return Verdict("lives")
        program = os.path.join(scratch, "changed")
        status, said = self.build.link(unit, object, bodies, program, under)
        if status != 0:
            return Verdict("does not compile", unit.name, "does not link")
        for environment in self.build.environments(unit):
            failures = passes = 0
            while failures < 2 and passes < 2:  # one failure may be due to a busy machine
                status, said = self.build.run(program, environment, under, 10 + 10 * before.seconds)
                if status is None:
                    return Verdict("does not end", unit.name, "does not end")
                failures, passes = (failures, passes + 1) if status in (0, 77) else (failures + 1, passes)
                if failures == 0:
                    break
            if failures == 2:
                return Verdict("fails", unit.name, flow_scope(said))
        return Verdict("lives")

    def refuse(self, unit, scratch):
        """Tries a file that must not compile."""
        wrong = self.build.not_refused(unit, scratch)
        if wrong is None or self.build.not_refused(unit) is not None:
            return Verdict("same code")
        return Verdict("fails", unit.name, wrong)

    def same_optimised(self, units, scratch, bodies_alone):
        """True if the optimised code of these units does not depend on the change."""
        return all(self.build.optimised_bodies(unit, scratch) == self.build.optimised_bodies(unit) and
                   (bodies_alone or self.build.optimised(unit, scratch) == self.build.optimised(unit))
                   for unit in units[:OPTIMISED_WITNESSES])


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def same_bytes(one, other):
    return contents(one) == contents(other)


def first_error(said):
    line = next((line for line in said.splitlines() if " error: " in line), "")
    return line.partition(" error: ")[2][:70]


def flow_scope(said):
    """Returns the name of the first test case that failed, or what else went wrong."""
    case = ""
    for line in said.splitlines():
        if line.startswith("TEST CASE:"):
            case = line.removeprefix("TEST CASE:").strip()
        if "WARNING: ThreadSanitizer: data race" in line:
            return "a data race"
        if "ERROR: " in line:
            return case
    left = next((line for line in said.splitlines() if line.startswith("CUDA stand-in: at exit")), "")
    return left.removeprefix("CUDA stand-in: ")[:60] or "crashes"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 -B tests/benchmarks/driver.py [PROGRAM]: tests of what benchmarks/run decides. PROGRAM is a built bench_serial."""

import os
import re
import stat
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
PROGRAM = sys.argv.pop() if len(sys.argv) > 1 else None

from driver import judge, table  # noqa: E402
from driver.measure import Absent, Fault, Measured, Patience, measure, run_slice  # noqa: E402
from driver.model import Across, Contender, Limit, Ratio, Row  # noqa: E402
from rows import all_rows  # noqa: E402


def result(median, foreign=0.0, two_threads=1.0, **more):
    return {"contender": "c", "case": "k", "median_ns": median, "p10_ns": median, "p90_ns": median, "p99_ns": median,
            "mean_ns": median, "samples": 1, "cpu_s": 0.1, "wall_s": 0.1, "foreign_cpu": foreign, "timer_ns": 0,
            "two_threads": two_threads, "disturbed": foreign > 0.05, **more}


def row(**more):
    values = {"number": "1", "title": "t", "group": "g", "case": "k",
              "contenders": [Contender("a", "bench_a", ours=True), Contender("b", "bench_b")]}
    made = Row(**{**values, **more})
    made.check()
    return made


def measured(of, variant="", **results):
    made = Measured(of, variant)
    made.results = results
    return made


class SlicesThatOthersDisturb(unittest.TestCase):
    def test_are_repeated_until_one_is_quiet(self):
        slices = iter([result(1, 0.9), result(2, 0.06), result(3, 0.04), result(4, 0)])
        kept = Patience().quiet(lambda: next(slices))
        self.assertEqual((kept["median_ns"], kept["disturbed"]), (3, False))

    def test_are_repeated_so_often_and_then_the_least_disturbed_is_kept(self):
        slices = iter([result(1, 0.9), result(2, 0.2), result(3, 0.3), result(4, 0.4), result(5, 0)])
        kept = Patience(times=3).quiet(lambda: next(slices))
        self.assertEqual((kept["median_ns"], kept["disturbed"]), (2, True))

    def test_are_not_repeated_when_the_time_for_that_is_used_up(self):
        slices = iter([result(1, 0.9), result(2, 0)])
        self.assertEqual(Patience(seconds=0).quiet(lambda: next(slices))["median_ns"], 1)

    def test_are_left_out_where_most_rounds_are_quiet(self):
        ours, peer = [result(10), result(10), result(10, 0.5)], [result(20), result(30), result(1000)]
        self.assertEqual(judge.ratio(row(), ours, peer), judge.Spread(2.5, 2, 3, 2, False))

    def test_count_where_there_is_nothing_better_and_that_is_said(self):
        ours, peer = [result(10), result(10, 0.5)], [result(20), result(40)]
        found = judge.ratio(row(), ours, peer)
        self.assertEqual(found, judge.Spread(3, 2, 4, 2, True))
        self.assertIn("3! (2 to 4)", table.spread_text(found))


class Ratios(unittest.TestCase):
    def test_are_formed_round_by_round(self):
        ours, peer = [result(1), result(100), result(10)], [result(3), result(200), result(40)]
        self.assertEqual(judge.ratio(row(), ours, peer).median, 3)

    def test_say_how_many_times_better_ours_is_also_where_more_is_better(self):
        ours, peer = [result(1, rate=30)], [result(1, rate=10)]
        self.assertEqual(judge.ratio(row(metric="rate", better="higher"), ours, peer).median, 3)

    def test_are_none_of_what_was_not_said(self):
        self.assertIsNone(judge.ratio(row(), [result(1)], [result(None)]))

    def test_are_none_for_who_ran_on_one_thread_where_two_are_asked_for(self):
        strict = row(two_threads=True, targets=[Ratio("a", "b", at_least=1)])
        here = measured(strict, a=[result(1)], b=[result(5, two_threads=0.9)])
        (verdict,) = judge.judge(strict, {"": here})
        self.assertIsNone(verdict.met)
        self.assertEqual(verdict.why, "b ran on one thread")
        self.assertIn("one thread", "\n".join(table.lines_of(strict, {"": here})))

    def test_are_to_the_first_of_ours_that_took_part_on_two_threads(self):
        strict = row(two_threads=True, contenders=[Contender(n, "bench_x", ours=True) for n in "abc"])
        here = measured(strict, b=[result(1, two_threads=0)], c=[result(1)])
        self.assertEqual(judge.base_of(strict, here), "c")


class Targets(unittest.TestCase):
    def verdicts(self, target, parts, **more):
        of = row(variants={v: {} for v in parts}, targets=[target], **more)
        return judge.judge(of, {v: measured(of, v, **results) for v, results in parts.items()})

    def test_ratio(self):
        for bound, met in ((3.9, True), (4, True), (4.1, False)):
            (verdict,) = self.verdicts(Ratio("a", "b", at_least=bound), {"": {"a": [result(1)], "b": [result(4)]}})
            self.assertIs(verdict.met, met)

    def test_limits(self):
        parts = {"": {"a": [result(1, x=5)]}}
        for target, met in ((Limit("a", "x", at_most=5), True), (Limit("a", "x", at_most=4), False),
                            (Limit("a", "x", at_least=5), True), (Limit("a", "x", at_least=6), False),
                            (Limit("a", "y", at_least=6), None)):
            (verdict,) = self.verdicts(target, parts)
            self.assertIs(verdict.met, met, str(target))

    def test_across_variants(self):
        parts = {"small": {"a": [result(10)]}, "large": {"a": [result(19)]}}
        for bound, met in ((2, True), (1.8, False)):
            (verdict,) = self.verdicts(Across("a", "large", "small", at_most=bound), parts)
            self.assertIs(verdict.met, met)

    def test_of_what_was_not_measured_are_not_judged(self):
        (verdict,) = self.verdicts(Ratio("a", "b", at_least=1), {"": {"a": [result(1)]}})
        self.assertIsNone(verdict.met)

    def test_in_many_variants_are_one_line_with_the_worst(self):
        parts = {str(v): {"a": [result(v)]} for v in (1, 2, 3, 9, 4)}
        (_, line) = table.target_lines(self.verdicts(Limit("a", "median_ns", at_most=5), parts))
        self.assertRegex(line, r"MISSED +row 1: .*: met in 4 of 5; worst, 9: 9 ns")

    def test_that_name_nobody_are_refused(self):
        for target in (Ratio("a", "z", at_least=1), Limit("a", "x", at_most=1, variant="z"), Across("z", "", "", 1)):
            with self.assertRaises(AssertionError):
                row(targets=[target])


class Rounds(unittest.TestCase):
    def test_let_all_take_turns_and_leave_out_who_fails(self):
        of = row(contenders=[Contender("a", "p", ours=True), Contender("b", "p"), Contender("c", "p"), Contender("d", "p"),
                             Contender("e", "p", full_only=True), Contender("f", "p", only=("x",))],
                 variants={"": {"n": 1}, "x": {}}, keys={"seconds": 0.4, "m": 2})
        calls = []

        def run(contender, keys):
            calls.append(contender.name)
            self.assertEqual(keys, {"n": 1, "m": 2, "seconds": 0.2})
            if contender.name == "c":
                raise Absent("not here")
            if contender.name == "d" and calls.count("d") == 2:
                raise Fault("it broke")
            return result(1)

        done = measure(of, "", run, 4, Patience(), scale=0.5)
        self.assertEqual({n: len(r) for n, r in done.results.items()}, {"a": 4, "b": 4})
        self.assertEqual((done.absent, done.faults), ({"c": "not here"}, {"d": "it broke"}))
        self.assertEqual(calls.count("c"), 1)


class Programs(unittest.TestCase):
    def run_script(self, script, timeout=20):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bench_x")
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, stat.S_IRWXU)
            return run_slice(folder, "bench_x", "k", {"n": 1}, timeout)

    def test_that_are_not_there_or_cannot_run_here_are_absent(self):
        with self.assertRaisesRegex(Absent, "not built"):
            run_slice("/nowhere", "bench_x", "k", {})
        with self.assertRaisesRegex(Absent, "^no luck$"):
            self.run_script("echo 'skipped: no luck' >&2; exit 77")

    def test_that_fail_are_faults(self):
        for script, why in (("echo broken >&2; exit 1", "exit code 1: broken"), ("echo no json", "one line of JSON"),
                            ("echo '{\"case\": 1}'", "its JSON lacks"), ("sleep 5", "not done after")):
            with self.assertRaisesRegex(Fault, why):
                self.run_script(script, timeout=1)

    @unittest.skipIf(PROGRAM is None, "no program was given")
    def test_say_what_the_driver_reads(self):
        folder, program = os.path.split(PROGRAM)
        said = run_slice(folder, program, "fork_join", {"seconds": 0.01})
        self.assertEqual((said["case"], said["two_threads"]), ("fork_join", 0))
        self.assertGreater(said["samples"], 3)
        late = run_slice(folder, program, "periodic", {"seconds": 0.01, "gap": 1e6, "jitter": 0.02, "body": 1000})
        self.assertGreater(late["median_ns"], 1000)
        self.assertGreater(late["wall_s"], 3e-3)
        with self.assertRaisesRegex(Fault, "unknown key hue"):
            run_slice(folder, program, "fork_join", {"hue": 1})
        with self.assertRaisesRegex(Fault, "no case nothing"):
            run_slice(folder, program, "nothing", {})


class TheRows(unittest.TestCase):
    def test_name_programs_that_cmake_knows(self):
        known = set()
        for folder in ("dispatch", "work"):
            path = os.path.join(ROOT, "benchmarks", folder, "CMakeLists.txt")
            if os.path.exists(path):
                with open(path) as file:
                    known |= set(re.findall(r"\w+", file.read()))
        for of in all_rows():
            for contender in of.contenders:
                self.assertIn(contender.program.removeprefix("bench_"), known, f"row {of.number}")

    def test_have_numbers_of_their_own(self):
        numbers = [of.number for of in all_rows()]
        self.assertEqual(len(numbers), len(set(numbers)))


if __name__ == "__main__":
    unittest.main()

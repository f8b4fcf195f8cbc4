# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 -B tests/mutants/check.py: tests of how changes are read, and of what is said of them on a small tree."""

import os
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from trial.change import Change, Wrong, read  # noqa: E402
from trial.command import run  # noqa: E402
from trial.in_order import in_order  # noqa: E402
from trial.suite import Suite  # noqa: E402
from trial.trial import Trial, Verdict  # noqa: E402

COMPILER = os.environ.get("CXX", "clang++-16")
ENTRY = """== name
-1 is taken for a row
+ more words
file: include/a.hpp
tests: plan/plan array/view
under: thread
---i;
-
-  b
+++i;
+
"""
TREE = {
    "include/fanout/fanout.hpp": "#pragma once\n#include <fanout/base/twice.hpp>\n",
    "include/fanout/base/twice.hpp": """#pragma once
template <class T>
T twice(T x) {
  static_assert(sizeof(T) > 1, "fanout: no "
                               "bytes");
  return x * 2;  // or more
}
template <class T>
T never(T x) { return x; }
inline int two() { return 2; }
""",
    "include/fanout/source.hpp": "#include <fanout/base/same.ipp>\n",
    "include/fanout/base/same.hpp": """#pragma once
int same(int);
#ifndef FANOUT_SEPARATE_COMPILATION
#include <fanout/base/same.ipp>
#endif
""",
    "include/fanout/base/same.ipp": """#pragma once
#include <fanout/base/same.hpp>
int same(int a) { return a + 0; }
int untested(int b) { return b + 0; }
""",
    "tests/base/same.cpp": """#include <doctest/doctest.h>
#include <fanout/base/same.hpp>
TEST_CASE("of seven") { CHECK(same(7) == 7); }
""",
    "tests/base/twice.cpp": """#include <doctest/doctest.h>
#include <fanout/base/twice.hpp>
TEST_CASE("of three") { CHECK(twice(3) == 6); }
""",
    "tests/base/other.cpp": """#include <doctest/doctest.h>
#include <fanout/fanout.hpp>
TEST_CASE("all numbers are positive") { CHECK(two() > 0); }
""",
    "tests/must_not_compile/bytes.cpp": """// expect: fanout: no bytes
#include <fanout/base/twice.hpp>
#ifndef FANOUT_CONTROL
char byte = twice('a');
#endif
""",
}


def written(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return folder


class InOrder(unittest.TestCase):
    def test_results_come_in_order_and_calls_run_at_once(self):
        def slow_if_even(i):
            time.sleep(0.02 * (i % 2 == 0))
            return -i

        self.assertEqual(list(in_order(slow_if_even, range(20), 2)), [(i, -i) for i in range(20)])

    def test_a_caller_may_stop_early(self):
        called = []
        for i, _ in in_order(called.append, range(1000), 2):
            if i == 3:
                break
        self.assertLess(len(called), 1000)

    def test_what_a_call_raises_is_raised(self):
        with self.assertRaises(ZeroDivisionError):
            list(in_order(lambda i: 1 // i, [1, 0, 1], 2))


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)


class Lists(InFolder):
    def listed(self, text):
        written(self.folder, {"list": text})
        return read(os.path.join(self.folder, "list"))

    def refused(self, text, words):
        with self.assertRaisesRegex(Wrong, words):
            self.listed(text)

    def test_description_and_text_may_begin_with_any_character(self):
        changes = self.listed("Words.\n- more\n\n" + ENTRY + "\n\n== other\nfile: f\n-b\n")
        self.assertEqual(changes, [Change("name", "include/a.hpp", "--i;\n\n  b", "++i;\n",
                                          "-1 is taken for a row + more words", ("plan/plan", "array/view"), "thread"),
                                   Change("other", "f", "b", "")])

    def test_what_is_not_of_the_format_is_refused_with_its_line(self):
        self.refused("== a\nwords\n-b\n+c\n", "list:5: expected `file")
        self.refused("== a\nfile: f\n+c\n", "list:3: expected `-`")
        self.refused("== a\nfile: f\nunder: thread\ntests: t\n-b\n", "list:4: expected `-`")
        self.refused("== a\nfile: f\n-b\n+c\n-d\n", "list:5: expected `\\+`")
        self.refused("== a\nfile: f\n-b\nwords\n", "list:4: expected `\\+`")
        self.refused("== a\nfile: f\n-b\n\nwords\n", "list:5: expected `== name`")
        self.refused("== a\nfile: f\n-b\n\n== a\nfile: f\n-b\n", "duplicate name: a")

    def test_the_text_stands_in_the_file_once(self):
        written(self.folder, {"f": "a - b - c\n"})
        self.assertEqual(Change("n", "f", "- b", "+ b").put_into(self.folder), "a + b - c\n")
        for find, words in (("-", "2 times"), ("d", "0 times")):
            with self.assertRaisesRegex(Wrong, words):
                Change("n", "f", find, "").put_into(self.folder)
        with self.assertRaisesRegex(Wrong, "there is no g"):
            Change("n", "g", "a", "").put_into(self.folder)


class Commands(unittest.TestCase):
    def test_a_command_that_does_not_end_is_killed_with_its_children(self):
        begin = time.monotonic()
        self.assertEqual(run(["bash", "-c", "echo here; sleep 60 & wait"], 1, ROOT), (None, "here\n"))
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(run(["bash", "-c", "echo here; exit 3"], 60, ROOT), (3, "here\n"))


class Units(InFolder):
    def test_the_likeliest_are_first(self):
        suite = Suite(written(self.folder, {**TREE, "tests/must_not_compile/more.cpp": """// expect: other words
#include <fanout/fanout.hpp>
""", "tests/base/far.cpp": "#include <fanout/base/far.hpp>\n", "include/fanout/base/far.hpp": "#include <vector>\n"}))
        self.assertEqual([unit.name for unit in suite.order("include/fanout/base/twice.hpp")],
                         ["base/twice", "must_not_compile/bytes", "base/other", "must_not_compile/more"])

    def test_a_digest_changes_with_what_is_included(self):
        before = Suite(written(self.folder, TREE)).digest("tests/base/other.cpp")
        self.assertEqual(Suite(self.folder).digest("tests/base/other.cpp"), before)
        written(self.folder, {"include/fanout/base/twice.hpp": TREE["include/fanout/base/twice.hpp"] + "\n"})
        self.assertNotEqual(Suite(self.folder).digest("tests/base/other.cpp"), before)


@unittest.skipUnless(shutil.which(COMPILER), "there is no clang")
class Verdicts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = written(tempfile.mkdtemp(), TREE)
        os.symlink(os.path.join(ROOT, "tests", "main.cpp"), os.path.join(cls.folder, "tests", "main.cpp"))
        os.symlink(os.path.join(ROOT, "tests", "support"), os.path.join(cls.folder, "tests", "support"))
        cls.trial = Trial(cls.folder, COMPILER)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def judged(self, find, replace):
        return self.trial.judge(Change("n", "include/fanout/base/twice.hpp", find, replace), leave_out_same_code=True)

    def test_found(self):
        self.assertEqual(self.judged("x * 2", "x * 3"), Verdict("fails", "base/twice", "of three"))
        self.assertEqual(self.judged("x * 2", "x.two()").how, "does not compile")
        self.assertEqual(self.judged("return 2", "return -2"),
                         Verdict("fails", "base/other", "all numbers are positive"))
        self.assertEqual(self.judged("sizeof(T) > 1", "sizeof(T) > 0"),
                         Verdict("fails", "must_not_compile/bytes", "compiles, and should not"))

    def test_not_found(self):
        self.assertEqual(self.judged("return 2", "return 1"), Verdict("lives"))

    def test_bodies_are_compiled_once_for_all_units(self):
        for find, replace, how in (("a + 0", "a + 1", "fails"), ("b + 0", "b + 1", "lives"),
                                   ("(int b)", "(/* more */ int b)", "same code")):
            change = Change("n", "include/fanout/base/same.ipp", find, replace)
            self.assertEqual(self.trial.judge(change, leave_out_same_code=True).how, how)

    def test_same_code(self):
        self.assertEqual(self.judged("return x;", "return x + 1;"), Verdict("same code"))  # nowhere used
        self.assertEqual(self.judged("x * 2", "x + x"), Verdict("same code"))  # optimised
        self.assertEqual(self.judged("or more", "or less"), Verdict("same code"))

    def test_a_verdict_is_kept_until_its_tests_change(self):
        alive = Verdict("lives")
        self.assertEqual(self.judged("return 2", "return 4"), alive)
        said = dict(self.trial.known)
        self.assertEqual(Trial(self.folder, COMPILER).known, said)
        written(self.folder, {"tests/base/other.cpp": TREE["tests/base/other.cpp"].replace("> 0", "< 4")})
        self.addCleanup(written, self.folder, TREE)
        self.trial = Trial(self.folder, COMPILER)
        self.assertTrue(self.judged("return 2", "return 4").found)

    def test_a_header_stands_alone_or_not(self):
        for replace, alone in (("return 3", True), ("return x", False)):
            change = Change("n", "include/fanout/base/twice.hpp", "return 2", replace)
            self.assertEqual(self.trial.stands_alone(change), alone)


if __name__ == "__main__":
    unittest.main()

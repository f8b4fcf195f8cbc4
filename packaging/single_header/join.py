# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 join.py ROOT: prints the headers of fanout as one header, each where the first #include of it stands."""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
include = root / "include"

# What needs another library, or several files, stays out.
LEFT_OUT = ("fanout/cuda", "fanout/mpi", "fanout/adapt/", "fanout/source.hpp")
TITLE = "// ---- "  # of a header: errors say a line, and this says where it comes from
SPDX = "// SPDX-License-Identifier: "

INCLUDE = re.compile(r"#include <([^>]+)>")
CONDITION = re.compile(r"\s*#\s*(if|endif)")
BODIES = "#if !defined(FANOUT_SEPARATE_COMPILATION)"


def is_taken(name):
    return not name.startswith(LEFT_OUT)


class Joined:
    def __init__(self):
        self.lines = []
        self.seen = set()  # headers of any library, on all systems
        self.sometimes = set()  # headers of fanout that stand under a condition

    def add(self, name, under_condition=False):
        """Adds the lines of a header that is not there yet."""
        if not is_taken(name):
            raise SystemExit(f"{name} is included, but needs another library")
        if name in self.sometimes:
            raise SystemExit(f"{name} is included under a condition, and in another place, too")
        before = set(self.seen)
        self.seen.add(name)
        self.add_lines(name)
        if under_condition:  # what it includes may be missing on other systems
            self.sometimes |= {each for each in self.seen - before if each.startswith("fanout/")}
            self.seen = before

    def add_lines(self, name):
        lines = (include / name).read_text().splitlines()
        conditions = []
        self.lines += ["", TITLE + name, ""]
        for line in lines:
            condition = CONDITION.match(line)
            if condition:
                is_of_bodies = line == BODIES or (condition[1] == "endif" and conditions[-1] == BODIES)
                conditions = [*conditions, line] if condition[1] == "if" else conditions[:-1]
                if is_of_bodies:  # with all bodies here, there is no other file to compile them in
                    continue
            if line.startswith(SPDX) or line == "#pragma once":
                continue
            found = INCLUDE.match(line)
            is_conditional = any(each != BODIES for each in conditions)
            if not found:
                self.lines.append(line)
            elif found[1].startswith("fanout/"):
                if found[1] not in self.seen:
                    self.add(found[1], is_conditional)
                    self.lines += ["", TITLE + name, ""]
            elif found[1] not in self.seen:
                self.lines.append(line)
                if not is_conditional:
                    self.seen.add(found[1])


def version():
    number = int(re.search(r"#define FANOUT_VERSION (\d+)", (include / "fanout/base/version.hpp").read_text())[1])
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def squeezed(lines):
    """The lines without titles of nothing, and with one empty line where includes leave several."""
    kept = []
    for line in lines:
        if line.startswith(TITLE):
            while kept and (not kept[-1] or kept[-1].startswith(TITLE)):
                kept.pop()
            kept.append("")
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept


joined = Joined()
joined.add("fanout/base/requirements.hpp")
names = sorted(str(path.relative_to(include)) for path in (include / "fanout").rglob("*.hpp"))
for name in filter(is_taken, names):
    if name not in joined.seen | joined.sometimes:
        joined.add(name)

licence = (root / "LICENSE").read_text().splitlines()
print(f"{SPDX}Apache-2.0 WITH LLVM-exception")
print("//")
print(f"// fanout {version()} in one header: what needs a C++20 compiler and threads, and no other library.")
print("// It was made by packaging/single_header/run. Its comments say what is public.")
print("//")
print("\n".join(f"// {line}".rstrip() for line in licence))
print("""
#if !defined(FANOUT_SINGLE_HEADER)
#define FANOUT_SINGLE_HEADER

#if defined(FANOUT_SEPARATE_COMPILATION)
#error "fanout: the single header has no compiled part; use the headers of include/fanout"
#endif
""")
print("\n".join(squeezed(joined.lines)))
print("\n#endif  // FANOUT_SINGLE_HEADER")

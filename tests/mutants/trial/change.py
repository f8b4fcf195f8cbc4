# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of headers, and the files that list them.

    == name
    What the change does, in lines of any text.
    file: include/fanout/plan/plan.hpp
    tests: plan/plan scatter/scatter
    under: thread
    -text that is replaced
    +text that replaces it

An entry ends at an empty line. `tests` (the files that are tried first) and `under` (a sanitizer) are optional. The
order is fixed, so a line of the description may begin with any character. A line of text loses its first character;
blanks are kept. Lines before the first `==` are not read.
"""

import dataclasses
import os


class Wrong(Exception):
    """A list is malformed, or a change does not fit its file."""


@dataclasses.dataclass(frozen=True)
class Change:
    name: str
    file: str
    find: str
    replace: str
    what: str = ""
    tests: tuple = ()
    under: str = ""

    def put_into(self, root):
        """Returns the text of the file with the change. Raises Wrong unless `find` occurs in it exactly once."""
        try:
            with open(os.path.join(root, self.file), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            raise Wrong(f"{self.name}: there is no {self.file}")
        count = text.count(self.find)
        if count != 1:
            raise Wrong(f"{self.name}: its text occurs {count} times in {self.file}, expected once")
        return text.replace(self.find, self.replace)


def read(path):
    """Returns the changes that a file lists, in order. Raises Wrong, with the line, if the format is not kept."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith("== ")), len(lines))
    changes = []
    while at < len(lines):
        if lines[at] == "":
            at += 1
            continue
        end = next((i for i in range(at, len(lines)) if lines[i] == ""), len(lines))
        changes.append(entry(path, at, lines[at:end]))
        at = end
    names = [change.name for change in changes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Wrong(f"{path}: duplicate name: {' and '.join(twice)}")
    return changes


def entry(path, number, lines):
    """Returns the change of one entry. `number` is that of its first line, from 0."""
    rest = list(lines)

    def refuse(expected):
        raise Wrong(f"{path}:{number + len(lines) - len(rest) + 1}: expected {expected}")

    def take(prefix):
        return rest.pop(0)[len(prefix):] if rest and rest[0].startswith(prefix) else None

    def take_all(prefix):
        taken = []
        while rest and rest[0].startswith(prefix):
            taken.append(take(prefix))
        return taken

    name = take("== ") or refuse("`== name`")
    what = []
    while rest and not rest[0].startswith("file: "):
        what.append(rest.pop(0))
    file = take("file: ") or refuse("`file: path`")
    tests = tuple((take("tests: ") or "").split())
    under = take("under: ") or ""
    find = take_all("-") or refuse("`-` and the text that is replaced")
    replace = take_all("+")
    if rest:
        refuse("`+` and the text that replaces it, or an empty line")
    return Change(name.strip(), file.strip(), "\n".join(find), "\n".join(replace), " ".join(what), tests, under.strip())

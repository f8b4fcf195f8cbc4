# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of tests, and the order in which a change is tried on them.

In the suite: the tests of each room, tests/conformance, tests/contributing, tests/steady_state/counts.cpp and
tests/must_not_compile. Tests in tests/cuda run on the stand-ins for CUDA and NCCL, those in tests/mpi on two ranks or,
in tests/mpi/threads, on threads. Not in it: adapters, OpenMP, whole programs (two_units, without_threads,
shared_registry, consumer, cuda/programs), nvcc, callgrind, mpi/nccl.
"""

import dataclasses
import functools
import glob
import hashlib
import os
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
EXPECTED = re.compile(r"// expect: ([^\n]+)")
FAST = ("-O0", "-D_GLIBCXX_ASSERTIONS")


@dataclasses.dataclass(frozen=True)
class Unit:
    """One file of tests, tests/NAME.cpp, and how it is built."""

    name: str
    kind: str = "core"  # or "cuda", "nccl", "mpi", "ranks", "refused"
    flags: tuple = FAST
    libraries: tuple = ()

    @property
    def source(self):
        return f"tests/{self.name}.cpp"

    @property
    def refused(self):
        return self.kind == "refused"

    @property
    def main(self):
        return f"tests/{'mpi/' * (self.kind == 'mpi')}main.cpp"


class Suite:
    def __init__(self, root, cuda=None, nccl=None, has_mpi=False):
        """`cuda` and `nccl` are the folders of their headers, or None."""
        self.root = root
        self.cuda = cuda
        self.nccl = nccl
        self.has_mpi = has_mpi
        self.units = {unit.name: unit for unit in self.find_units()}

    def find_units(self):
        rooms = [os.path.basename(folder) for folder in self.paths("include/fanout/*") if os.path.isdir(folder)]
        for folder in sorted(set(rooms) - {"adapt", "cuda", "mpi"}) + ["conformance", "contributing"]:
            for name in self.names(f"tests/{folder}/*.cpp"):
                if not name.endswith("/openmp"):  # clang's packages lack OpenMP
                    yield Unit(name)
        for name in self.names("tests/steady_state/counts.cpp"):
            yield Unit(name, flags=("-O2", "-U_FORTIFY_SOURCE", "-fno-builtin"), libraries=("-ldl",))
        for name in self.names("tests/mpi/threads/*.cpp"):
            if name != "mpi/threads/bodies":
                yield Unit(name, "ranks")
        for name in self.names("tests/must_not_compile/**/*.cpp"):
            yield Unit(name, "refused")
        for name in self.names("tests/cuda/*.cpp") + self.names_in_rooms("cuda") if self.cuda else []:
            of_nccl = name.startswith("cuda/nccl")
            if not of_nccl or self.nccl:
                yield Unit(name, "nccl" if of_nccl else "cuda", libraries=("-ldl",))
        for name in self.names("tests/mpi/*.cpp") + self.names_in_rooms("mpi") if self.has_mpi else []:
            if name != "mpi/main":
                yield Unit(name, "mpi")

    def paths(self, pattern):
        return sorted(glob.glob(os.path.join(self.root, pattern), recursive=True))

    def names(self, pattern):
        """Returns the names of units, of files below tests/."""
        tests = os.path.join(self.root, "tests")
        return [os.path.relpath(path, tests)[:-len(".cpp")] for path in self.paths(pattern)]

    def names_in_rooms(self, folder):
        """Returns the same of the rooms inside a folder of the library."""
        return [name for room in self.paths(f"include/fanout/{folder}/*/")
                for name in self.names(f"tests/{folder}/{os.path.basename(os.path.dirname(room))}/*.cpp")]

    def names_of_sources(self, pattern):
        return [os.path.relpath(path, self.root) for path in self.paths(pattern)]

    @functools.lru_cache(None)
    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    @functools.lru_cache(None)
    def includes(self, path):
        """Returns the files of this repository that this one includes, in any branch of an #if."""
        found = []
        for quote, name in INCLUDE.findall(self.text(path)):
            folders = ["include", "tests", "examples"] + ([os.path.dirname(path)] if quote == '"' else [])
            for folder in folders:
                candidate = os.path.normpath(os.path.join(folder, name))
                if os.path.isfile(os.path.join(self.root, candidate)):
                    found.append(candidate)
                    break
        return tuple(found)

    @functools.lru_cache(None)
    def distances(self, path):
        """Maps each file that this one includes, directly or not, to the least number of includes between them."""
        distances, edge = {path: 0}, [path]
        while edge:
            nearer, edge = edge, []
            for file in nearer:
                for included in self.includes(file):
                    if included not in distances:
                        distances[included] = distances[file] + 1
                        edge.append(included)
        return distances

    @functools.lru_cache(None)
    def runs(self, unit):
        """True if the unit has test cases, not only static_asserts."""
        return any("TEST_CASE" in self.text(file) for file in self.distances(unit.source) if file.startswith("tests/"))

    @functools.lru_cache(None)
    def digest(self, *paths):
        """Returns a hash of these files and of all that they include."""
        files = sorted({file for path in paths for file in self.distances(path)})
        sums = [hashlib.sha256(f"{file}\0{self.text(file)}".encode()).hexdigest() for file in files]
        return hashlib.sha256("".join(sums).encode()).hexdigest()[:16]

    def order(self, header):
        """Returns the units that include the header, the likeliest to notice a change first: its own tests, files that
        must not compile for a sentence in it, other tests by their distance, other files that must not compile. Among
        equals, the smaller file is first."""
        own = header.removeprefix("include/fanout/").removesuffix(".hpp").removesuffix(".ipp")
        words = re.sub(r'"\s*"', "", self.text(header))

        def likelihood(unit):
            if unit.name == own:
                return 0, 0, 0
            size = len(self.text(unit.source))
            if not unit.refused:
                return 2, self.distances(unit.source)[header], size
            expected = EXPECTED.search(self.text(unit.source))
            return 1 if expected and expected[1] in words else 3, 0, size

        units = [unit for unit in self.units.values() if header in self.distances(unit.source)]
        return sorted(units, key=likelihood)

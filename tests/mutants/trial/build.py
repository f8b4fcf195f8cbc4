# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs files of tests, with a changed header or without.

Tests are built against the bodies of fanout/source.hpp, so a changed .ipp is compiled once for all of them. The headers
of the standard library and of doctest are precompiled. What is built without a change is kept in build/mutants, under a
name with a digest of its inputs.
"""

import collections
import contextlib
import dataclasses
import functools
import glob
import hashlib
import os
import re
import shutil
import threading
import time

from .change import Wrong
from .command import run
from .suite import EXPECTED, FAST, Suite, Unit

COMPILE_SECONDS = 900
RUN_SECONDS = 300
OPTIMISED = ("-O2", "-D_GLIBCXX_ASSERTIONS")
PRECOMPILE = ("-fpch-validate-input-files-content", "-x", "c++-header")
STAND_INS = {"cudart": "cudart.so.13", "nccl": "nccl.so.2"}
STANDARD = re.compile(r"^[ \t]*#[ \t]*include <([a-z_]+)>", re.MULTILINE)
CORE = "include/fanout/source.hpp"
# What kinds of units link besides CORE.
BODIES = {"cuda": ["include/fanout/cuda/source.hpp"], "nccl": ["include/fanout/cuda/source.hpp"],
          "mpi": ["include/fanout/mpi/source.hpp"], "ranks": ["tests/mpi/threads/bodies.cpp"]}
MPI_RUN = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader", "--mca",
           "mpi_yield_when_idle", "1", "-n", "2"]


def mpi_flags(part):
    """Returns the flags with which Open MPI's compiler compiles or links; none if it is not there."""
    if not shutil.which("mpicxx.openmpi"):
        return []
    status, said = run(["mpicxx.openmpi", f"--showme:{part}"], 60, ".")
    return said.split() if status == 0 else []


@dataclasses.dataclass
class Built:
    object: bytes
    program: str = None  # None if its tests fail
    seconds: float = 0


class Build:
    def __init__(self, root, compiler):
        self.root = root
        self.compiler = compiler
        self.folder = os.path.join(root, "build", "mutants")
        self.making = collections.defaultdict(threading.RLock)  # by path: one thread makes it, others wait
        os.makedirs(self.folder, exist_ok=True)
        cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
        cuda = cuda if os.path.exists(os.path.join(cuda, "cuda_runtime_api.h")) else None
        places = ["/usr/local/include", "/usr/include", cuda] if cuda else []
        nccl = next((place for place in places if os.path.exists(os.path.join(place, "nccl.h"))), None)
        self.mpi = {part: mpi_flags(part) for part in ("compile", "link")}
        self.suite = Suite(root, cuda, nccl, bool(self.mpi["compile"]))
        status, self.version = run([compiler, "--version"], 60, root)
        if status != 0 or "clang" not in self.version:
            raise Wrong(f"{compiler} is not clang")
        self.linker = ["-fuse-ld=mold"] if shutil.which("mold") else []
        # ThreadSanitizer needs it where the kernel spreads addresses widely.
        fixed = run(["setarch", "-R", "true"], 60, root)[0] == 0
        self.under = {"": [], "thread": ["setarch", "-R"] if fixed else []}

    # ---- digests -------------------------------------------------------------------------------------------------

    def sum(self, *parts):
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]

    @functools.lru_cache(None)
    def digest(self, unit):
        sources = [unit.source, unit.main, *self.sources_of_bodies(unit)]
        for stand_in in self.stand_ins(unit):
            sources += self.stand_in_sources(stand_in)
        return self.sum(self.version, unit, self.suite.digest(*sources))

    def kept(self, name, digest):
        """Returns the path under which a result is kept. Removes the results with another digest."""
        path = os.path.join(self.folder, "kept", f"{name.replace('/', '+')}@")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        for old in glob.glob(glob.escape(path) + "*"):
            if not old.startswith(path + digest):
                with contextlib.suppress(FileNotFoundError):  # another thread was first
                    os.remove(old)
        return path + digest

    def write(self, path, text):
        """Writes the file unless it exists: clang refuses a precompiled header whose source is newer."""
        with self.making[path]:
            if not os.path.exists(path):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        return path

    def make(self, path, command):
        """Runs the command with `-o path` unless the path exists. Raises Wrong if the command fails."""
        with self.making[path]:
            if not os.path.exists(path):
                status, said = run(command + ["-o", path + ".new"], COMPILE_SECONDS, self.root)
                if status != 0:
                    raise Wrong(f"{' '.join(command)} failed:\n{said}")
                os.replace(path + ".new", path)
        return path

    # ---- compiling -----------------------------------------------------------------------------------------------

    def flags(self, unit, scratch=None):
        flags = [self.compiler, "-std=c++20", "-w", "-pthread", "-DDOCTEST_CONFIG_SUPER_FAST_ASSERTS",
                 "-DFANOUT_SEPARATE_COMPILATION", *unit.flags]
        if scratch:  # __FILE__ must not depend on the folder
            flags += ["-I", f"{scratch}/include", f"-ffile-prefix-map={scratch}/="]
        flags += ["-I", "include", "-I", "tests", "-I", "examples"]
        if unit.kind == "nccl":
            flags += ["-isystem", self.suite.nccl]
        if unit.kind in ("cuda", "nccl"):
            flags += ["-isystem", self.suite.cuda]
        if unit.kind == "mpi":
            flags += self.mpi["compile"]
        return flags

    @functools.lru_cache(None)
    def standard(self):
        """Returns a precompiled header of doctest and of all standard headers that any unit includes."""
        files = {file for unit in self.suite.units.values() for file in self.suite.distances(unit.source)}
        names = sorted({name for file in files for name in STANDARD.findall(self.suite.text(file))})
        lines = ["#include <doctest/doctest.h>"]
        lines += [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif" for name in names]
        text = "\n".join(lines) + "\n"
        path = self.kept("standard", self.sum(self.version, text))
        source = self.write(path + ".hpp", text)
        return self.make(path + ".pch", self.flags(Unit("")) + [*PRECOMPILE, "-fpch-instantiate-templates", source])

    def precompiled(self, unit, under=""):
        return ["-include-pch", self.standard()] if unit.flags == FAST and not under else []

    def compile(self, unit, object, under="", scratch=None, source=None):
        sanitize = [f"-fsanitize={under}"] if under else []
        command = self.flags(unit, scratch) + self.precompiled(unit, under) + sanitize
        return run(command + ["-c", source or unit.source, "-o", object], COMPILE_SECONDS, self.root)

    def sources_of_bodies(self, unit):
        names = [CORE, *BODIES.get(unit.kind, [])]
        return [name for name in names if os.path.exists(os.path.join(self.root, name))]

    def bodies(self, unit, under="", scratch=None):
        """Returns the paths of the object files of all bodies that the unit links, or None if a change does not compile.
        One folder `scratch` has one change."""
        objects = []
        for source in self.sources_of_bodies(unit):
            kind = "core" if source == CORE else unit.kind
            alike = Unit("", kind, unit.flags)
            digest = self.sum(self.version, alike, under, self.suite.digest(source))
            name = source.removeprefix("include/").removeprefix("tests/")
            path = self.kept(f"{kind}+{name}{under}{''.join(unit.flags)}", digest) + ".o"
            text = self.write(path + ".cpp", f"#include <{name}>\n")
            if scratch:
                path = os.path.join(scratch, os.path.basename(path))
            with self.making[path]:
                status, said = (0, "") if os.path.exists(path) else self.compile(alike, path, under, scratch, text)
                if status != 0 and not scratch:
                    raise Wrong(f"{source} does not compile:\n{said}")
                if status != 0:
                    return None
            objects.append(path)
        return objects

    def stands_alone(self, header, scratch=None):
        """True if a unit compiles that includes the header and nothing else."""
        room = header.split("/")[2]
        kind = "nccl" if header.endswith("/nccl.hpp") else room.removesuffix(".hpp")
        unit = Unit("", kind if kind in ("nccl", "cuda", "mpi") else "core")
        includes = os.path.join(scratch or self.folder, "includes.cpp")
        with open(includes, "w", encoding="utf-8") as file:
            file.write(f"#include <{header.removeprefix('include/').replace('.ipp', '.hpp')}>\n")
            if header.endswith(".ipp"):  # the header does not include it if it is compiled once
                file.write(f"#include <{header.removeprefix('include/')}>\n")
        command = self.flags(unit, scratch) + self.precompiled(unit) + ["-fsyntax-only", includes]
        return run(command, COMPILE_SECONDS, self.root)[0] == 0

    def optimised_bodies(self, unit, scratch=None):
        """Returns the optimised bodies that the unit links, or None if they do not compile."""
        paths = self.bodies(dataclasses.replace(unit, flags=OPTIMISED), scratch=scratch)
        if paths is None:
            return None
        contents = []
        for path in paths:
            with open(path, "rb") as file:
                contents.append(file.read())
        return contents

    def optimised(self, unit, scratch=None):
        """Returns the optimised object file, or None if it does not compile."""
        unit = dataclasses.replace(unit, flags=OPTIMISED) if unit.flags == FAST else unit
        path = f"{scratch}/optimised.o" if scratch else self.kept(unit.name + ".optimised", self.digest(unit))
        with self.making[path]:
            if scratch or not os.path.exists(path):
                if self.compile(unit, path, scratch=scratch)[0] != 0:
                    return None
            with open(path, "rb") as file:
                return file.read()

    # ---- linking and running -------------------------------------------------------------------------------------

    def stand_ins(self, unit):
        return {"cuda": ["cudart"], "nccl": ["nccl", "cudart"]}.get(unit.kind, [])

    def stand_in_sources(self, name):
        return self.suite.names_of_sources(f"tests/cuda/stand_in/{name}/*.cpp")

    def stand_in(self, name, under):
        with self.making[name + under]:
            return self.make_stand_in(name, under)

    @functools.lru_cache(None)
    def make_stand_in(self, name, under):
        """Builds a stand-in for a library as tests/cuda/CMakeLists.txt does; returns its folder."""
        sources = self.stand_in_sources(name)
        folder = os.path.join(self.folder, "stand_in", under + self.sum(self.version, self.suite.digest(*sources)))
        library = os.path.join(folder, f"lib{STAND_INS[name]}")
        if not os.path.exists(library):
            os.makedirs(folder, exist_ok=True)
            exports = os.path.join(folder, "exports.map")
            with open(exports, "w", encoding="utf-8") as file:
                map = self.suite.text(f"tests/cuda/stand_in/{name}/exports.map")
                file.write(map.replace("@CUDAToolkit_VERSION_MAJOR@", "13"))
            unit = Unit("", "nccl" if name == "nccl" else "cuda", flags=("-O1",))
            flags = self.flags(unit) + ([f"-fsanitize={under}"] if under else []) + ["-fPIC"]
            objects = [self.make(os.path.join(folder, os.path.basename(source) + ".o"), flags + ["-c", source])
                       for source in sources]
            needs = ["-L", self.stand_in("cudart", under), "-lcudart"] if name == "nccl" else []
            self.make(library, flags + ["-shared", f"-Wl,-soname,lib{STAND_INS[name]}",
                                        f"-Wl,--version-script={exports}", *objects, *needs])
        link = os.path.join(folder, f"lib{name}.so")
        if not os.path.exists(link):
            os.symlink(os.path.basename(library), link)
        return folder

    @functools.lru_cache(None)
    def main(self, source, kind, under):
        unit = Unit("", kind)
        path = self.kept(source + under, self.sum(self.version, kind, self.suite.digest(source))) + ".o"
        flags = self.flags(unit) + ([f"-fsanitize={under}"] if under else [])
        return self.make(path, flags + ["-c", source])

    def link(self, unit, object, bodies, program, under=""):
        main = self.main(unit.main, "mpi" if unit.kind == "mpi" else "core", under)
        command = [self.compiler, *self.linker, "-pthread", *unit.flags, main, object, *bodies]
        command += [f"-fsanitize={under}"] if under else []
        for stand_in in self.stand_ins(unit):
            folder = self.stand_in(stand_in, under)
            command += ["-L", folder, f"-Wl,-rpath,{folder}", f"-l{stand_in}"]
        libraries = [*unit.libraries, *(self.mpi["link"] if unit.kind == "mpi" else [])]
        return run(command + [*libraries, "-o", program], COMPILE_SECONDS, self.root)

    def environments(self, unit):
        """Returns the environments in which the tests are run, one after the other."""
        if unit.kind == "mpi":
            return [{"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}]
        if unit.kind not in ("cuda", "nccl"):
            return [{}]
        return [{"FANOUT_STAND_IN_DEVICES": count, "FANOUT_STAND_IN_DELAYS": count} for count in ("2", "4")]

    def run(self, program, environment, under, seconds):
        environment = {**environment, "TSAN_OPTIONS": "halt_on_error=1:symbolize=0"}
        # LD_LIBRARY_PATH often names CUDA's own folder, and would take precedence over the stand-in's.
        environment["LD_LIBRARY_PATH"] = ""
        starts = MPI_RUN if "OMPI_ALLOW_RUN_AS_ROOT" in environment else []
        return run(self.under[under] + starts + [program], seconds, self.root, environment, bound_memory=not under)

    # ---- without a change ----------------------------------------------------------------------------------------

    @functools.lru_cache(8)
    def without_change(self, unit, under=""):
        path = self.kept(unit.name + under, self.digest(unit))
        with self.making[path]:
            if not os.path.exists(path + ".seconds"):
                self.build_without_change(unit, under, path)
        with open(path + ".seconds", encoding="utf-8") as file:
            seconds = file.read()
        if not seconds:
            return Built(b"")
        with open(path + ".o", "rb") as file:
            return Built(file.read(), path, float(seconds))

    def build_without_change(self, unit, under, path):
        wrong = said = None
        if self.compile(unit, path + ".o", under)[0] != 0:
            wrong = "does not compile"
        elif self.suite.runs(unit) and self.link(unit, path + ".o", self.bodies(unit, under), path, under)[0] != 0:
            wrong = "does not link"
        begin = time.monotonic()
        for environment in self.environments(unit) if self.suite.runs(unit) and not wrong else []:
            status, said = self.run(path, environment, under, RUN_SECONDS)
            if status not in (0, 77):
                wrong = "fails"
        if wrong:
            print(f"{unit.name} {wrong} without a change, and is left out", flush=True)
        with open(path + ".seconds", "w", encoding="utf-8") as file:
            file.write("" if wrong else str(time.monotonic() - begin))

    # ---- what must not compile -----------------------------------------------------------------------------------

    def all_headers(self, scratch=None):
        """Returns a precompiled header of fanout.hpp, or None if that does not compile."""
        path = f"{scratch}/all" if scratch else self.kept("all_headers", self.suite.digest("include/fanout/fanout.hpp"))
        with self.making[path]:
            if not os.path.exists(path + ".pch"):
                source = self.write(path + ".hpp", "#include <fanout/fanout.hpp>\n")
                plain = Unit("")
                command = self.flags(plain, scratch) + self.precompiled(plain) + [*PRECOMPILE, source]
                command += ["-o", path + ".pch"]
                if run(command, COMPILE_SECONDS, self.root)[0] != 0:
                    return None
        return path + ".pch"

    def not_refused(self, unit, scratch=None):
        """Returns what tests/must_not_compile/check.cmake would say of the file, or None if it passes."""
        headers = self.all_headers(scratch)
        if headers is None:
            return "fanout.hpp does not compile"
        command = self.flags(unit, scratch) + ["-include-pch", headers, "-fsyntax-only", "-fdiagnostics-color=never",
                                               "-fmessage-length=0", unit.source]
        if run(command + ["-DFANOUT_CONTROL"], COMPILE_SECONDS, self.root)[0] != 0:
            return "does not compile with FANOUT_CONTROL"
        status, said = run(command, COMPILE_SECONDS, self.root)
        if status == 0:
            return "compiles, and should not"
        errors = [line for line in said.splitlines() if "error: " in line]
        if not errors:
            return "ends the compiler"
        first, *others = EXPECTED.findall(self.suite.text(unit.source))
        if first not in errors[0] or any(words not in said for words in others):
            return "is refused with other words"
        if said.count("error: ") != 1:
            return "is refused with more errors than one"
        return None

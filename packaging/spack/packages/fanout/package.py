# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recipe for Spack 1.0 and newer: spack repo add packaging/spack && spack install fanout."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Fanout(CMakePackage):
    """Data parallelism over cores, GPUs and ranks for any functor with a forward: one line wraps it, and one call
    splits the batch, runs the replicas and gathers their nested results. Header-only."""

    license("Apache-2.0 WITH LLVM-exception")

    # There is no release to download yet: this packages the clone that the recipe lies in.
    git = Path(__file__).resolve().parents[4].as_uri()
    version("main", branch="main", no_cache=True)

    # What programs with these headers need. fanout itself is compiled with none of them.
    variant("cuda", default=False, description="GPUs of NVIDIA: <fanout/cuda.hpp>")
    variant("nccl", default=False, when="+cuda", description="collectives by NCCL: <fanout/cuda/nccl.hpp>")
    variant("mpi", default=False, description="ranks: <fanout/mpi.hpp>")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl", when="+nccl")
    depends_on("mpi@3:", when="+mpi")

    conflicts("%gcc@:11", msg="fanout needs g++ 12 or newer")
    conflicts("%clang@:15", msg="fanout needs clang 16 or newer")
    conflicts("platform=windows", msg="fanout needs Linux or another POSIX system")

    def cmake_args(self):
        return [
            self.define("FANOUT_BUILD_TESTS", False),
            self.define("FANOUT_BUILD_EXAMPLES", False),
            self.define("FANOUT_BUILD_BENCHMARKS", False),
        ]

    @run_after("install")
    def keep_test(self):
        cache_extra_test_sources(self, ["tests/consumer/main.cpp"])

    def test_installed(self):
        """a program compiles with the installed headers and runs"""
        sources = os.path.join(self.test_suite.current_test_cache_dir, "tests", "consumer", "main.cpp")
        compiler = which(os.environ["CXX"])
        compiler("-std=c++20", "-pthread", f"-I{self.prefix.include}", sources, "-o", "main")
        which("./main")()

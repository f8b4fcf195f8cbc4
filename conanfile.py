# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, get, load
from conan.tools.scm import Version


class Fanout(ConanFile):
    name = "fanout"
    description = "Runs any functor on every device of a set, batch split and results gathered"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("parallel", "data-parallel", "heterogeneous", "gpu", "header-only")

    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "LICENSE"
    no_copy_source = True
    test_package_folder = "packaging/conan/test_package"

    # In a registry, the recipe is told the version, and downloads the sources. Elsewhere they lie beside it.

    def set_version(self):
        header = os.path.join(self.recipe_folder, "include", "fanout", "base", "version.hpp")
        if not os.path.exists(header):
            return
        version = int(re.search(r"#define FANOUT_VERSION (\d+)", load(self, header))[1])
        self.version = f"{version // 10000}.{version // 100 % 100}.{version % 100}"

    def layout(self):
        cmake_layout(self)

    def package_id(self):
        self.info.clear()

    def validate(self):
        if self.settings.os in ("Windows", "WindowsStore", "WindowsCE"):
            raise ConanInvalidConfiguration("fanout needs Linux or another POSIX system; on Windows, build it in WSL")
        narrow = r"x86|arm(v[4-7].*|.*_32.*)|ppc32.*|mips|sparc|s390|riscv32|sh4le|tc\d+|xtensa.*|asm\.js|wasm|avr"
        if re.fullmatch(narrow, str(self.settings.arch)):
            raise ConanInvalidConfiguration(f"fanout needs a 64-bit system, and {self.settings.arch} has 32 bits")
        check_min_cppstd(self, 20)
        oldest = {"gcc": "12", "clang": "16"}.get(str(self.settings.compiler))
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"fanout needs {self.settings.compiler} {oldest} or newer")

    def source(self):
        if self.conan_data:
            get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def build(self):
        CMake(self).configure(
            variables={"FANOUT_BUILD_TESTS": False, "FANOUT_BUILD_EXAMPLES": False, "FANOUT_BUILD_BENCHMARKS": False}
        )

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # CMake finds the installed package, whose components and versions are as everywhere. What follows is for
        # Conan's other generators.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "fanout")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread"]

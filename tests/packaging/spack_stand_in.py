# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 spack_stand_in.py RECIPES CLONE: reads recipes of fanout as Spack does, with stand-ins for its functions.

Finds names that Spack does not have, options that the CLONE's CMakeLists.txt does not have, files that lie nowhere, and
variants without a dependency.
"""

import hashlib
import sys
import urllib.request
import types
from pathlib import Path

import yaml

repository, clone = (Path(argument).resolve() for argument in sys.argv[1:])
assert yaml.safe_load((repository / "repo.yaml").read_text())["repo"]["namespace"] == "fanout"

told = []


def directive(name):
    return lambda *words, **options: told.append((name, words, options))


directives = ["license", "version", "variant", "depends_on", "conflicts"]
spack = types.ModuleType("spack.package")
for each in directives:
    setattr(spack, each, directive(each))
spack.run_after = lambda phase: lambda function: function
spack.which = spack.cache_extra_test_sources = None
systems = types.ModuleType("spack_repo.builtin.build_systems.cmake")
systems.CMakePackage = type("CMakePackage", (), {"define": lambda self, name, value: f"-D{name}={value}"})
for name, module in {"spack.package": spack, systems.__name__: systems}.items():
    parts = name.split(".")
    for i in range(1, len(parts)):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    sys.modules[name] = module

path = repository / "packages" / "fanout" / "package.py"
recipe = {"__file__": str(path)}
exec(compile(path.read_text(), path, "exec"), recipe)
package = recipe["Fanout"]

versions = [(words[0], options) for kind, words, options in told if kind == "version"]
for _, options in versions:
    if "url" in options:
        with urllib.request.urlopen(options["url"]) as archive:
            assert hashlib.sha256(archive.read()).hexdigest() == options["sha256"], options
    else:
        assert Path(package.git.removeprefix("file://")) == clone, package.git
cmake = (clone / "CMakeLists.txt").read_text()
for argument in package().cmake_args():
    assert argument.removeprefix("-D").split("=")[0] in cmake, argument
variants = {words[0] for kind, words, _ in told if kind == "variant"}
needed = {options.get("when") for kind, _, options in told if kind == "depends_on"}
assert {f"+{name}" for name in variants} <= needed, (variants, needed)
assert (clone / "tests" / "consumer" / "main.cpp").exists()
print(f"Spack's recipe has the versions {[name for name, _ in versions]} and the variants {sorted(variants)}")

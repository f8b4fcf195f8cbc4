# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""conda.py RECIPE CHANNEL OUT: builds a package of conda's by rattler-build, with the tools of this machine and an empty
channel, which it makes, and lets the recipe test it. Also reads the recipe as conda-forge would."""
import json
import os
import sys

import rattler_build

recipe_file, channel, out = sys.argv[1:]
for platform in ("noarch", "linux-64"):
    os.makedirs(os.path.join(channel, platform))
    with open(os.path.join(channel, platform, "repodata.json"), "w", encoding="utf-8") as file:
        json.dump({"info": {"subdir": platform}, "packages": {}, "packages.conda": {}}, file)
recipe = rattler_build.Stage0Recipe.from_file(recipe_file)
tools = rattler_build.ToolConfiguration(test_strategy="native")
recipe.run_build(rattler_build.VariantConfig({"tools": ["system"]}), tools, out, ["file://" + os.path.abspath(channel)],
                 package_format="tar-bz2")
(elsewhere,) = recipe.render(rattler_build.VariantConfig({"cxx_compiler": ["gxx"]}))
needed = str(elsewhere.recipe.requirements.build)
for tool in ("gxx", "cmake", "ninja"):
    if tool not in needed:
        sys.exit(f"elsewhere, the recipe must ask for {tool}: {needed}")

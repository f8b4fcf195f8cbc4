# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How Sphinx makes the site of what prepare.py and Doxygen wrote: see docs/build."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "../../include/fanout/base/version.hpp"), encoding="utf-8") as header:
    number = int(re.search(r"#define FANOUT_VERSION (\d+)", header.read())[1])

project = "fanout"
version = release = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
copyright = "the fanout authors"

extensions = ["myst_parser", "breathe"]
myst_heading_anchors = 4  # as GitHub makes them
breathe_projects = {project: os.path.join(HERE, "../../build/docs/xml")}
breathe_default_project = project
suppress_warnings = ["duplicate_declaration.cpp"]  # it does not tell overloads apart by their constraints
primary_domain = highlight_language = "cpp"

html_theme = "pydata_sphinx_theme"
html_title = "fanout"
html_static_path = [os.path.join(HERE, "style.css")]
html_css_files = ["style.css"]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_show_sourcelink = html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 cheat_sheet.py SITE: writes the page that has each public name with the first sentence about it.

The names and the sentences are those of Doxygen's XML.
"""

import os
import re
import sys
import xml.etree.ElementTree as xml

import prepare

FOR_OTHERS = {"device_kinds", "own_types", "macros"}  # what few users write


def words(node):
    """The text of a node, as Markdown in a table."""

    def parts(node, in_code=False):
        mark = "`" if node.tag == "computeroutput" else ""
        in_code = in_code or bool(mark)
        pieces = [node.text or ""]
        for child in node:
            pieces += [parts(child, in_code), child.tail or ""]
        pieces[::2] = [piece if in_code else piece.replace("<", "&lt;") for piece in pieces[::2]]
        return mark + "".join(pieces) + mark

    return " ".join(parts(node).split()).replace("|", "\\|") if node is not None else ""


def plain_name(node):
    name = node.findtext("qualifiedname") or node.findtext("compoundname")
    return re.sub(r"<.*", "", name).removeprefix("fanout::")


def names(site, group):
    """(name, sentence) of what a group has: types first, and each name once."""

    def compound(refid):
        return xml.parse(os.path.join(site, "xml", f"{refid}.xml")).getroot().find("compounddef")

    root = compound(f"group__{group.replace('_', '__')}")
    nodes = [compound(inner.get("refid")) for kind in ("innerconcept", "innerclass") for inner in root.findall(kind)]
    kinds = ("function", "typedef", "variable", "enum")
    nodes += [node for node in root.iter("memberdef") if node.get("kind") in kinds]
    found = {}
    for node in nodes:
        name, sentence = plain_name(node), words(node.find("briefdescription"))
        if sentence and not re.search(r"::.*::|operator[^\w\"]|~", name):
            found.setdefault(name, sentence)
    return list(found.items())


def main():
    site = sys.argv[1]
    lines = ["# Cheat sheet", "", "Each name of `namespace fanout`, and the first sentence of the reference about it."]
    for group, title, *_ in prepare.titles():
        rows = names(site, group)
        if group in FOR_OTHERS or not rows:
            continue
        lines += ["", f"## [{title}]({group}.md)", "", "| | |", "|---|---|"]
        lines += [f"| `{name}` | {sentence} |" for name, sentence in rows]
    prepare.write(os.path.join(site, "pages", "reference", "cheat_sheet.md"), "\n".join(lines) + "\n")


main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 check.py SITE: passes if the reference in SITE has each public name, and a line about it.

The names are those that Universal Ctags finds in the headers, with the concepts, which it does not know. Fails also for
a header with such a name that groups.txt does not have, for a type of fwd.hpp that no header defines, for a name of
fanout::detail in the reference, and for a link of the site that leads nowhere.
"""
import glob
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import prepare

NOT_HOMES = {"fwd.hpp", "fanout.hpp", "cuda.hpp"}  # they declare or include what others define


def public_names():
    """(header, name with its namespace) of each."""
    command = ["ctags", "-R", "--languages=C++", "--kinds-C++=cgstufvd", "--sort=no", "-x", "--_xformat=%K|%s|%F|%N",
               prepare.HEADERS]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        kind, scope, file, name = line.split("|", 3)
        header = os.path.relpath(file, prepare.HEADERS)
        if name.startswith(("__anon", "operator ")) and not name.startswith('operator ""'):
            continue
        if kind == "macro" and name.startswith("FANOUT_"):
            if f"#undef {name}\n" not in prepare.read(file):
                yield header, name
        elif re.fullmatch(r"fanout::v0(::(cuda|backend|literals|rules))?", scope):
            yield header, scope.replace("::v0", "") + "::" + name.replace("operator ", "operator")
    for header in prepare.all_headers():
        code = prepare.code_of(prepare.without_detail(prepare.read(os.path.join(prepare.HEADERS, header))))
        space = next((f"fanout::{inner}::" for inner in ("backend", "cuda") if f"namespace {inner}" in code), "fanout::")
        for name in re.findall(r"^concept (\w+)", code, flags=re.M):
            yield header, space + name


def declared_beforehand():
    """The types that fwd.hpp declares."""
    code = prepare.code_of(prepare.without_detail(prepare.read(os.path.join(prepare.HEADERS, "fwd.hpp"))))
    return re.findall(r"^(?:class|struct|enum class|concept|using) (\w+)", code, flags=re.M)


def says_something(node):
    return any("".join(part.itertext()).strip() for kind in ("briefdescription", "detaileddescription")
               for part in node.findall(kind))


def reference(site):
    """The names that the reference has, and those that it says something about."""
    shown, said = set(), set()
    for file in glob.glob(os.path.join(site, "xml", "*.xml")):
        for compound in xml.parse(file).getroot().findall("compounddef"):
            found = []
            if compound.get("kind") in ("class", "struct", "union", "concept"):
                name = compound.findtext("compoundname")
                found.append((re.sub(r" ?<.*", "", name), compound))
            if compound.get("kind") in ("namespace", "group", "file"):
                space = compound.findtext("compoundname") + "::" if compound.get("kind") == "namespace" else ""
                for member in compound.iter("memberdef"):
                    name = member.findtext("qualifiedname") or space + member.findtext("name")
                    found.append((re.sub(r"<.*", "", name), member))
            for name, node in found:
                name = re.sub(r'operator ?"" ?', 'operator""', name)
                shown.add(name)
                if says_something(node):
                    said.add(name)
    return shown, said


def broken_links(site):
    html = os.path.join(site, "html")
    anchors = {}

    def anchors_of(path):
        if path not in anchors:
            anchors[path] = set(re.findall(r'(?:id|name)="([^"]+)"', prepare.read(path)))
        return anchors[path]

    for path in sorted(glob.glob(os.path.join(html, "**", "*.html"), recursive=True)):
        page = os.path.relpath(path, html)
        if page.startswith("_static"):
            continue
        text = prepare.read(path)
        for kind, target in re.findall(r'<(\w+) [^>]*?(?:src|href)="([^"]+)"', text):
            if re.match(r"[a-z]+:", target):
                if kind != "a":
                    yield f"{page}: needs {target} from the network"
                continue
            file, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), file.partition("?")[0])) if file else path
            if not os.path.exists(there):
                yield f"{page}: {target} leads to no file"
            elif anchor and anchor not in anchors_of(there):
                yield f"{page}: {target} leads to no heading"


def main():
    site = sys.argv[1]
    names = {(header, name) for header, name in public_names()
             if header not in NOT_HOMES}
    homes = prepare.groups()
    errors = [f"docs/reference/groups.txt has no group for {header}, which declares {name}"
              for header, name in sorted(names) if header not in homes]
    shown, said = reference(site)
    for header, name in sorted(names):
        if header in homes and name not in shown:
            errors.append(f"include/fanout/{header}: the reference does not have {name}: is there a comment?")
        elif header in homes and name not in said:
            errors.append(f"include/fanout/{header}: no comment says what {name} is")
    last_words = {name.rpartition("::")[2] for _, name in names}
    errors += [f"include/fanout/fwd.hpp declares {name}, which no header defines"
               for name in declared_beforehand() if name not in last_words]
    errors += [f"the reference has {name}" for name in sorted(shown) if "detail::" in name]
    errors += broken_links(site)
    if errors or len(names) < 100:
        sys.exit("\n".join(errors) or f"only {len(names)} names were found: ctags does not read the headers")
    print(f"{len(names)} public names in {len(set(homes.values()))} groups: {site}/html/index.html")


main()

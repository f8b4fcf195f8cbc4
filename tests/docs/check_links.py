# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 check_links.py ROOT: passes if each link from one page to another leads to a file, and to a heading if it names one."""
import os
import re
import sys


def pages(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in files if name.endswith(".md"))


def text_of(page):
    with open(page, encoding="utf-8") as file:
        return re.sub(r"```.*?```", "", file.read(), flags=re.S)


def anchors(page):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            yield f"{page}: {link} leads to no file"
        elif anchor and target.endswith(".md") and anchor not in anchors(target):
            yield f"{page}: {link} leads to no heading"


def main():
    all_pages = sorted(pages(sys.argv[1]))
    broken = [line for page in all_pages for line in broken_links(page)]
    print("\n".join(broken) if broken else f"the links of {len(all_pages)} pages lead somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 prepare.py OUTPUT: writes what Doxygen reads, from the headers and the pages, in the repository's root.

Headers keep their lines, so that a warning names the right one. They lose what users do not write (detail, the inline
namespace, deduction guides, overloads that only refuse) and join the group that groups.txt names.
Examples that examples.txt names go behind the comment of their name. Pages lose what only GitHub reads, and their links
lead to pages of the site, which Sphinx makes of them. So do links to examples.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = "include/fanout"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def rows(name):
    """The words of each line of a table, less comments."""
    lines = (line.partition("# ")[0].split() for line in read(os.path.join(HERE, name)).splitlines())
    return [words for words in lines if words]


def groups():
    """The group of each header."""
    found, group, errors = {}, None, []
    for words in rows("groups.txt"):
        if words[0].startswith("["):
            group = words[0].strip("[]")
        else:
            for header in words:
                if header in found:
                    errors.append(f"docs/reference/groups.txt: {header} is there twice")
                if not os.path.exists(os.path.join(HEADERS, header)):
                    errors.append(f"docs/reference/groups.txt: there is no {header}")
                found[header] = group
    if errors:
        sys.exit("\n".join(errors))
    return found


def all_headers():
    for folder, folders, files in os.walk(HEADERS):
        folders.sort()
        yield from (os.path.relpath(os.path.join(folder, file), HEADERS) for file in sorted(files))


# ---- headers ----------------------------------------------------------------------------------------


def blank(text):
    """As many lines of nothing, but for conditions of the preprocessor."""
    return re.sub(r"^(?! *#(?:if|el|end)).*", lambda line: " " * len(line[0]), text, flags=re.M)


def code_of(text):
    """The text with spaces for comments, literals and directives: each character of code is at its place."""
    comments, directives = r"//[^\n]*|/\*.*?\*/", r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
    texts, letters = r'"(?:[^"\\\n]|\\.)*"', r"(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'"
    parts = "|".join((comments, texts, letters, directives))
    return re.sub(parts, lambda part: re.sub(r"[^\n]", " ", part[0]), text, flags=re.S | re.M)


def closing_brace(code, opening):
    depth = 0
    for brace in re.finditer(r"[{}]", code[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return opening + brace.start()
    raise ValueError("a brace is not closed")


def replaced(text, edits):
    """The text with `new` for what stands at [begin, end), for each (begin, end, new)."""
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def without_detail(text):
    code = code_of(text)
    edits, end = [], 0
    for found in re.finditer(r"namespace (?:\w+::)*detail \{", code):
        if found.start() < end:
            continue
        end = closing_brace(code, found.end() - 1) + 1
        edits.append((found.start(), end, blank(text[found.start():end])))
    return replaced(text, edits)


def without_refusals(text):
    """Without deduction guides, without specialisations of std and detail and those that constraints alone tell apart,
    and without what has no comment: functions that only tell compilers what to print, and explicit specialisations of
    variables."""
    code = code_of(text)
    edits = []
    head = r"^(?:template <[^;{}]*>\n(?: +requires[^;]*?\n)?)?"
    for found in re.finditer(head + r"[A-Z]\w*\([^;{}]*\)\s*->[^;{}]*;", code, flags=re.M):
        begin = re.search(r"(?:^ *///[^\n]*\n)*\Z", text[:found.start()], flags=re.M).start()
        edits.append((begin, found.end(), blank(text[begin:found.end()])))
    others = r"struct (?:(?:std|\w*detail)::|\w+<(?:Rule, )?X>)[^{;]*\{"
    for found in re.finditer(head + others, code, flags=re.M):
        begin = re.search(r"(?:^ *///[^\n]*\n)*\Z", text[:found.start()], flags=re.M).start()
        end = closing_brace(code, found.end() - 1) + 2
        edits.append((begin, end, blank(text[begin:end])))
    for found in re.finditer(r"^template <.*>\n(?:inline )?constexpr \w+ \w+<.*> =[^;]*;", code, flags=re.M):
        if not text[:found.start()].rstrip(" ").split("\n")[-2].startswith("///"):
            edits.append((found.start(), found.end(), blank(found[0])))
    for found in re.finditer(r"\{\s*static_assert\(", code):
        begin = max(code.rfind(mark, 0, found.start()) for mark in (";", "}", "{", "public:"))
        declaration = text[begin + 1:found.start()]
        if "(" in declaration and "///" not in declaration and not re.search(r"\b(struct|class)\b[^,>]*$", declaration):
            begin += 1 if text[begin] != "p" else len("public:")
            end = closing_brace(code, found.start()) + 1
            edits.append((begin, end, blank(text[begin:end])))
    return replaced(text, edits)


def grouped(text, group):
    """Each namespace in its group, but for the inline one, which is not there."""
    begin, end = f"/** @addtogroup {group} *//**@{{*/", "/**@}*/"
    code = code_of(text)
    edits, spaces = [], []
    for found in re.finditer(r"(inline )?namespace (\w+) \{", code):
        opening, closing = found.end() - 1, closing_brace(code, found.end() - 1)
        inside = [place for place in spaces if place > opening]
        spaces.append(closing)
        if found[2] == "fanout":
            continue
        if found[2] == "v0":
            edits += [(found.start(), found.end(), begin), (closing, closing + 1, end)]
        else:
            edits += [(found.start(), found.end(), f"{end} namespace {found[2]} {{ {begin}"),
                      (closing, closing + 1, f"{end} }} {begin}")]
    if not spaces:  # macros alone
        first, last = text.index("\n"), len(text.rstrip("\n"))
        edits = [(0, first, begin), (last, last, "\n" + end)]
    return replaced(text, edits)


def plain(text):
    """Names without `detail::` and functions without marks for compilers, in code."""
    code = code_of(text)
    marks = r"\b(?:\w+::)*detail::|\bFANOUT_(?:HOST_DEVICE|EXPORT|INLINE)\b ?|\[\[\w+(?:::\w+)?(?:\([^)]*\))?\]\] ?"
    edits = [(found.start(), found.end(), "") for found in re.finditer(marks, code)]
    # Values that Sphinx cannot read.
    values = r"(?: *= *|(?<=\w))\{+\.[^;]*?\}(?=;)|(?<=\bis_thread_safe) = requires.*?\}(?=;)"
    for found in re.finditer(values, code, flags=re.S):
        edits.append((found.start(), found.end(), "\n" * found[0].count("\n")))
    # A base class that users do not name.
    heads = r"^ *(?:struct|class) [^;{}()]*?( : (?:public |private )?detail::[^{;]*)\{"
    for found in re.finditer(heads, code, flags=re.M):
        edits = [edit for edit in edits if not found.start(1) <= edit[0] < found.end(1)]
        edits.append((found.start(1), found.end(1), " " + "\n" * text[found.start(1):found.end(1)].count("\n")))
    return replaced(text, edits)


def unlinked(header, text):
    """`rows()` in a comment is most often a member's, which Doxygen would take for the input rule."""
    if header.startswith("scatter/"):
        return text
    return re.sub(r"(?m)(?<=///)(.*)$", lambda comment: re.sub(r"(?<![\w:%.])rows\(", "%rows(", comment[1]), text)


def with_examples(header, text, examples):
    """`@include FILE` in a comment of its own, behind that of the name."""
    lines, code = text.split("\n"), code_of(text).split("\n")
    for name, file in examples:
        word = re.compile(rf"\b{name}\b *[({{;=<]|\b(?:struct|class|concept) {name}\b|\b{name}$")
        for at in (at for at, line in enumerate(code) if word.search(line)):
            while at > 0 and code[at - 1].strip() and not re.search(r"[;{}:]\s*$", code[at - 1]):
                at -= 1
            if at > 0 and lines[at - 1].lstrip().startswith("///"):
                lines[at] = f"/** @shows{{{file}}} */ {lines[at]}"
                break
        else:
            sys.exit(f"docs/reference/examples.txt: {header} has no {name} with a comment")
    return "\n".join(lines)


def snippet(source):
    """What stands between the marks `// [name]` and `// [/name]` of `path#name`."""
    path, _, name = source.partition("#")
    text = read(path) if os.path.exists(path) else ""
    found = re.search(rf"^ *// \[{name}\]\n(.*?)^ *// \[/{name}\]$", text, flags=re.S | re.M)
    if not found:
        sys.exit(f"docs/reference/examples.txt: {path} has no [{name}]")
    lines = [line for line in found[1].splitlines() if not re.fullmatch(r" *// \[/?\w+\]", line)]
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "".join(line[indent:] + "\n" for line in lines)


def prepare_headers(output):
    group_of, examples = groups(), {}
    for header, name, source in rows("examples.txt"):
        file = re.sub(r"\W", "_", source) + ".cpp"
        write(os.path.join(output, "examples", file), snippet(source))
        examples.setdefault(header, []).append((name, file))
    for header in all_headers():
        if header not in group_of:
            continue
        text = plain(grouped(without_refusals(without_detail(read(os.path.join(HEADERS, header)))), group_of[header]))
        text = with_examples(header, unlinked(header, text), examples.get(header, []))
        write(os.path.join(output, HEADERS, header), text)


# ---- pages ------------------------------------------------------------------------------------------


def pages():
    for folder in (".", "docs", "docs/guide", "docs/decisions"):
        yield from sorted(os.path.normpath(os.path.join(folder, file))
                          for file in os.listdir(folder) if file.endswith(".md"))


def place(page):
    """Where a page of the repository is in the site."""
    return "index.md" if page == "README.md" else page


programs = set()  # those that pages link, each of which has a page of its own


def link(page, text, target, group_of):
    path, _, heading = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return f"[{text}]({target})"
    path = os.path.normpath(os.path.join(os.path.dirname(page), path))
    if not os.path.exists(path):
        sys.exit(f"{page}: {target} leads to no file")
    header = os.path.relpath(path, HEADERS)
    if path in PAGES:
        there = place(path) + (f"#{heading}" if heading else "")
    elif header in group_of:
        there = f"reference/{group_of[header]}.md"
    elif path.startswith("examples/") and path.endswith((".cpp", ".hpp")):
        programs.add(path)
        there = f"{path}.md"
    else:  # another file of the repository
        if text == path:
            return f"`{path}`"
        return text if "`" in text else f"{text} (`{path}`)"
    return f"[{text}]({os.path.relpath(there, os.path.dirname(place(page)) or '.')})"


def prepare_page(page, group_of):
    text = re.sub(r"<!--.*?-->\n?", "", read(page), flags=re.S)
    # A link may go over two lines.
    blocks = re.split(r"(^ *```.*?^ *```$)", text, flags=re.S | re.M)
    for i in range(0, len(blocks), 2):
        blocks[i] = re.sub(r"(?<!!)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)",
                           lambda found: link(page, found[1], found[2], group_of), blocks[i])
    return "".join(blocks)


def contents(caption, entries, depth=1):
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n:maxdepth: {depth}\n\n{lines}\n```\n"


def linked_pages(page):
    """The pages of the same folder that a page links, in their order."""
    folder = os.path.dirname(page)
    targets = re.findall(r"\]\(([^)#\s]+\.md)\)", read(page))
    paths = (os.path.normpath(os.path.join(folder, target)) for target in targets)
    return list(dict.fromkeys(path for path in paths if path in PAGES and path not in TABS))


def prepare_pages(output):
    group_of = groups()
    texts = {page: prepare_page(page, group_of) for page in PAGES}
    guide = [path for path in linked_pages("docs/guide/index.md") if path.startswith("docs/guide/")]
    texts["docs/guide/index.md"] += contents("Guide", [os.path.basename(path) for path in guide])
    others = [page for page in PAGES if page not in {"README.md", *guide, *TABS}]
    texts["README.md"] += contents("Contents", [*TABS, "more"])
    for page, text in texts.items():
        write(os.path.join(output, "pages", place(page)), text)
    for program in sorted(programs):
        head = f"---\norphan: true\n---\n\n# {program}\n\n"
        write(os.path.join(output, "pages", f"{program}.md"), f"{head}```cpp\n{read(program)}```\n")
    more = contents("More", others).replace(":hidden:\n", "")
    write(os.path.join(output, "pages", "more.md"), f"# More pages\n{more}")


# ---- reference --------------------------------------------------------------------------------------


def titles():
    """(name, title, what it is about, where the guide says more) of each group, in the order of groups.dox."""
    text = re.sub(r"^/// ?", "", read(os.path.join(HERE, "groups.dox")), flags=re.M)
    group = r"^@defgroup (\w+) (.*)\n@brief (.*)\n((?:(?!@).*\n)*)"
    for name, title, brief, more in re.findall(group, text, flags=re.M):
        more = re.sub(r'<a href="([^"#]*)\.html(#[^"]*)?">([^<]*)</a>', r"[\3](\1.md\2)", more)
        yield name, title, brief, more.strip()


def prepare_reference(output):
    known = set(groups().values())
    lines = []
    for name, title, brief, more in titles():
        if name not in known:
            sys.exit(f"docs/reference/groups.dox: groups.txt has no [{name}]")
        lines.append(f"| [{title}]({name}.md) | {brief} |")
        names = f"```{{doxygengroup}} {name}\n:content-only:\n:members:\n```\n"
        write(os.path.join(output, "pages", "reference", f"{name}.md"), f"# {title}\n\n{brief}\n\n{more}\n\n{names}")
    head = ("# Reference\n\nThe names of fanout, grouped as the guide is. All of them are on the "
            "[cheat sheet](cheat_sheet.md).\n\n| group | what it has |\n|---|---|\n")
    entries = ["cheat_sheet.md", *(f"{name}.md" for name, *_ in titles())]
    text = head + "\n".join(lines) + "\n" + contents("Reference", entries)
    write(os.path.join(output, "pages", "reference", "index.md"), text)


def main():
    output = sys.argv[1]
    prepare_headers(output)
    prepare_pages(output)
    prepare_reference(output)


TABS = ["docs/guide/index.md", "docs/gallery.md", "reference/index.md", "docs/packages.md", "docs/performance.md"]
PAGES = list(pages())
if __name__ == "__main__":
    main()

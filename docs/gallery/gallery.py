# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles, runs and draws the programs of docs/gallery.md: see docs/gallery/draw.

A program of the page is a comment, `program: SOURCE ARGUMENT...; calls FIRST to LAST; with FLAG...`, and a last line
with its lines and its time. The last part of the comment may be missing."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

PAGE, PICTURES = "docs/gallery.md", "docs/pictures/gallery"
PROGRAM = re.compile(
    r"<!-- program: (?P<source>\S+)(?P<arguments>[^;]*); calls (?P<first>\d+) to (?P<last>\d+)(?:; with (?P<flags>.*))? -->\n"
    r".*?pictures/gallery/(?P<name>\w+)\.svg.*?\n\[(?P<lines>\d+) lines\]\(../examples/(?P=source)\), (?P<time>.*?)\n", re.S)
COMPILE = ["g++", "-std=c++20", "-O2", "-pthread", "-I", "include", "-I", "examples"]


def compiled(program, folder):
    """The paths of the program, and of the same program in a trace."""
    path = os.path.join(folder, program["name"])
    flags = (program["flags"] or "").split()
    subprocess.run([*COMPILE, "-c", "examples/" + program["source"], "-o", path + ".o",
                    *(flag for flag in flags if not flag.startswith("-l"))], check=True)
    subprocess.run(["objcopy", "--redefine-sym", "main=program_main", path + ".o", path + ".traced.o"], check=True)
    for objects, out in (([path + ".o"], path), ([path + ".traced.o", os.path.join(folder, "traced.o")], path + ".traced")):
        subprocess.run(["g++", "-pthread", *objects, "-o", out, *(flag for flag in flags if flag.startswith("-l"))],
                       check=True)
    return path, path + ".traced"


def run(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def lines_of(source):
    """Lines of code, without comments and empty ones."""
    with open("examples/" + source, encoding="utf-8") as file:
        return sum(1 for line in file if line.strip() and not line.strip().startswith("//"))


def shown(seconds):
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def main():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    programs = list(PROGRAM.finditer(text))
    if len(programs) != text.count("<!-- program:"):
        sys.exit(f"{PAGE}: a program of it is not as docs/gallery/gallery.py says")
    pictures, is_check = (sys.argv[1], True) if len(sys.argv) > 1 else (PICTURES, False)
    os.makedirs(pictures, exist_ok=True)
    wrong, edits = [], []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*COMPILE, "-c", "docs/gallery/traced.cpp", "-o", os.path.join(folder, "traced.o")], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            paths = list(pool.map(lambda program: compiled(program, folder), programs))
        for program, (plain, traced) in zip(programs, paths):
            name, trace = program["name"], os.path.join(folder, program["name"] + ".json")
            arguments = program["arguments"].split()
            seconds = min(run([plain, *arguments]) for _ in range(3))
            run([traced, trace, *arguments])
            subprocess.run([sys.executable, "docs/pictures/timeline.py", trace, os.path.join(pictures, name + ".svg"),
                            program["first"], program["last"]], check=True)
            lines = lines_of(program["source"])
            print(f"{name}: {lines} lines, {shown(seconds)}")
            if is_check and int(program["lines"]) != lines:
                wrong.append(f"{PAGE}: {program['source']} has {lines} lines, not {program['lines']}")
            edits.append((program.span("time"), shown(seconds)))
            edits.append((program.span("lines"), str(lines)))
    if wrong:
        sys.exit("\n".join(wrong))
    if not is_check:
        for (begin, end), new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)


main()

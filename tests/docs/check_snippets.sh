#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash tests/docs/check_snippets.sh [--fix]
#
# Code in the documentation is code from a test or an example. A fenced block that follows the comment
#   <!-- from: path/to/file#name -->
# must equal what stands in that file between `// [name]` and `// [/name]` (`# [name]` in scripts), with
# the common indentation and the marks of other snippets taken away; with no #name, the whole file less
# its shebang, its SPDX line and the empty lines and comments at its start. Every cpp block of README.md
# and CONTRIBUTING.md must have such a comment.
#
# Writes each document as it should be and compares; --fix puts that in its place.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
shopt -s nullglob
for document in README.md CONTRIBUTING.md docs/*.md docs/guide/*.md docs/decisions/*.md; do
  [[ -e $document ]] || continue
  strict=0
  [[ $document == docs/* ]] || strict=1
  awk -v document="$document" -v strict="$strict" '
    function complain(text) { print document ":" NR ": " text > "/dev/stderr"; bad = 1 }

    # Prints the snippet `from`, each line after `indent`; false if there is none.
    function print_snippet(from, indent,  path, name, at, line, text, count, inside, ended, lines, least, i) {
      at = index(from, "#")
      path = at ? substr(from, 1, at - 1) : from
      name = at ? substr(from, at + 1) : ""
      inside = (name == "")
      count = 0
      while ((at = (getline line < path)) > 0) {
        text = line
        sub(/^[ \t]+/, "", text)
        sub(/[ \t\r]+$/, "", text)
        if (name != "" && (text == "// [" name "]" || text == "# [" name "]")) { inside = 1; continue }
        if (name != "" && (text == "// [/" name "]" || text == "# [/" name "]")) { ended = inside; break }
        if (text ~ /^(\/\/|#) \[\/?[A-Za-z0-9_.-]+\]$/) continue
        if (name == "" && count == 0 && text ~ /^(\/\/|#)?$|^#!|SPDX-License-Identifier:/) continue
        if (inside) lines[++count] = (text == "" ? "" : line)
      }
      close(path)
      if (at < 0) { complain("cannot read " path); return 0 }
      if (name != "" && !ended) { complain(path " has no snippet [" name "] ... [/" name "]"); return 0 }
      least = -1
      for (i = 1; i <= count; ++i)
        if (lines[i] != "") {
          match(lines[i], /^[ \t]*/)
          if (least < 0 || RLENGTH < least) least = RLENGTH
        }
      for (i = 1; i <= count; ++i) print (lines[i] == "" ? "" : indent substr(lines[i], least + 1))
      return 1
    }

    fence != "" {                               # inside a block
      text = $0
      sub(/^[ \t]+/, "", text)
      if (text == fence) fence = ""
      if (fence == "" || !replaced) print
      next
    }
    /^[ \t]*```/ {                              # a block begins
      match($0, /^[ \t]*/)
      indent = substr($0, 1, RLENGTH)
      match($0, /```+/)
      fence = substr($0, RSTART, RLENGTH)
      language = substr($0, RSTART + RLENGTH)
      sub(/[ \t{].*$/, "", language)
      print
      replaced = 0
      if (from != "" && (language ~ /^(cpp|sh|cmake|ini)$/)) replaced = print_snippet(from, indent)
      else if (from != "") complain("the block after `from: " from "` is neither cpp, sh, cmake nor ini")
      else if (strict && language == "cpp") complain("a cpp block without <!-- from: path#name -->")
      from = ""
      next
    }
    /^[ \t]*<!-- from: .* -->[ \t]*$/ {
      from = $0
      sub(/^[ \t]*<!-- from: */, "", from)
      sub(/ *-->[ \t]*$/, "", from)
      print
      next
    }
    {
      if (from != "" && $0 !~ /^[ \t]*$/) { complain("no block follows `from: " from "`"); from = "" }
      print
    }
    END {
      if (fence != "") complain("a block is not closed")
      if (from != "") complain("no block follows `from: " from "`")
      exit bad
    }' "$document" > "$scratch/document" || failed=1

  diff -u --label "$document" --label "$document as its sources have it" "$document" "$scratch/document" ||
    if [[ ${1:-} == --fix ]]; then cat "$scratch/document" > "$document"; else failed=1; fi
done
exit "$failed"

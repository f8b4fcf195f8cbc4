#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash together.sh (controls|headers|refusals) FOLDER COMPILER FLAG... -- SOURCE...
#
# Compiles all cases as one unit, each in a namespace of its own, which reads the headers once. Writes to FOLDER what
# check.cmake looks at: `controls` if all cases compile with FANOUT_CONTROL; else NAME.txt, what the compiler says of the case
# NAME. `headers` takes it for granted that all compile so, as the nightly has seen. A case that has no file there, or an unexpected one, is compiled by itself. So are all if
# there is `unclear`, errors of no case: one may be the second of a case. Fails if the cases do not compile with
# FANOUT_CONTROL: each by itself takes many times as long.
set -euo pipefail
export LC_ALL=C
what=$1 folder=$2
shift 2
command=()
while [[ $1 != -- ]]; do command+=("$1") && shift; done
shift
mkdir -p "$folder"
unit=$folder/$what.cpp
is_clang() { case $("${command[0]}" --version) in *clang*) true ;; *) false ;; esac; }
# A case that specialises a template of fanout's cannot stand in another namespace, and <fanout/source.hpp> spoils the others.
# Such a case is compiled by itself.
mapfile -t cases < <(grep -LE '^template <>|^#include <fanout/source.hpp>' -- "$@")
set -- "${cases[@]}"

{
  # The headers first, outside of all namespaces: their guards leave nothing of them for the cases.
  sed -n 's/^#include </&/p' "$@" | sort -u
  for source; do
    folder_of=$(dirname -- "$source")
    sed -n "s|^#include \"\(.*\)\"|#include \"$folder_of/\1\"|p" "$source"
  done | sort -u
  for source; do
    printf 'namespace case_%s {\n#include "%s"\n}\n' "$(basename -- "$source" .cpp)" "$source"
  done
} > "$unit"

command+=(-fsyntax-only -w -fdiagnostics-color=never -fmessage-length=0 -ftemplate-backtrace-limit=0)
if [[ $what != refusals ]]; then
  rm -f "$folder/controls" "$folder/fanout.hpp.gch"
  # Halves the time of the cases that are compiled by themselves. Both compilers look for this name.
  echo '#include <fanout/fanout.hpp>' > "$folder/fanout.hpp"
  "${command[@]/-fsyntax-only/-xc++-header}" "$folder/fanout.hpp" -o "$folder/fanout.hpp.gch"
  [[ $what == controls ]] || { touch "$folder/controls" && cp "$unit" "$folder/controls.cpp" && exit 0; }
  "${command[@]}" -DFANOUT_CONTROL "$unit" > "$folder/controls.log" 2>&1 && touch "$folder/controls" && exit 0
  echo "the cases do not compile together, as they do where two have one name, so each is compiled by itself:" >&2
  head -n 20 "$folder/controls.log" >&2
  exit 1
fi

rm -f "$folder"/*.txt "$folder/unclear"
is_clang && command+=(-ferror-limit=0) || command+=(-fmax-errors=0)
"${command[@]}" "$unit" > "$folder/refusals.log" 2>&1 || true
# One error is a block of lines: what g++ says before it, its own line, and what clang says behind it. The case is the
# one whose file stands there, or else whose namespace.
awk -v folder="$folder" '
  function stem(path) { sub(/.*\//, "", path); sub(/\.cpp$/, "", path); return path }
  function named(name) { if (!(name in cases)) ++count; cases[name]; of = name }
  function finish(  i) {
    if (!errors) return
    of = ""; count = 0; delete cases
    for (i = 1; i <= n; ++i)
      if (match(block[i], /must_not_compile\/[A-Za-z0-9_\/]+\.cpp/)) named(stem(substr(block[i], RSTART, RLENGTH)))
    for (i = 1; i <= n && of == ""; ++i)
      if (match(block[i], /case_[A-Za-z0-9_]+::/)) named(substr(block[i], RSTART + 5, RLENGTH - 7))
    if (of == "") { for (i = 1; i <= n; ++i) print block[i] > (folder "/unclear") }
    else if (count > 1) for (of in cases) print "error: of one of several cases\nerror: see refusals.log" > (folder "/" of ".txt")
    else for (i = 1; i <= n; ++i) print block[i] > (folder "/" of ".txt")
  }
  function begin() { finish(); n = 0; errors = 0 }
  / error: / { if (errors) begin(); errors = 1 }
  / note: / { block[++n] = $0; next }
  /^In file included from|: In |^ +from |required from|required by|At global scope/ { if (errors && !/ error: /) begin() }
  { block[++n] = $0 }
  END { finish() }' "$folder/refusals.log"
echo "$(find "$folder" -maxdepth 1 -name '*.txt' | wc -l) of $# cases are refused"

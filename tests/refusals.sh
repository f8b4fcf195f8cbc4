#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash refusals.sh ROOT: passes if each sentence with which a header of ROOT refuses to compile is expected by one of the
# programs that must not compile.
set -euo pipefail
cd -- "$1"
mapfile -t expected < <(cat tests/must_not_compile/{,*/}*.cpp tests/*/must_not_compile/*.cpp 2> /dev/null |
  sed -n 's|^// expect: \(fanout: .*\)|\1|p')
refusals=0 errors=0
while IFS= read -r header; do
  # Literals that stand side by side are one sentence.
  while IFS= read -r sentence; do
    refusals=$((refusals + 1))
    for text in "${expected[@]}"; do
      [[ $sentence != *"$text"* ]] || continue 2
    done
    printf '%s refuses with a sentence that no test expects: %s\n' "$header" "$sentence" >&2
    errors=$((errors + 1))
  done < <(tr '\n' ' ' < "$header" | sed 's/" *"//g' | grep -o '"fanout: [^"]*"' || true)
done < <(find include -name '*.hpp' -o -name '*.ipp' -o -name '*.cuh')
((refusals > 0 && errors == 0)) || exit 1
echo "$refusals refusals, each expected by a test"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash public_names.sh ROOT [MOST]: counts the names in namespace fanout that Universal Ctags finds in the headers, and
# fails if there are more than MOST (180). What users write belongs there. What authors of device kinds need belongs in
# fanout::backend, and all else in fanout::detail. Ends with 77, skipped, without Universal Ctags.
set -euo pipefail
most=${2:-180}
if ! ctags --version 2> /dev/null | grep -q "Universal Ctags"; then
  echo "SKIPPED: Universal Ctags was not found"
  exit 77
fi
mapfile -t names < <(ctags -R --languages=C++ --kinds-C++=cgstufv --sort=no -x --_xformat='%s %N' "$1/include" |
  awk '$1 == "fanout::v0" && $2 !~ /^(__anon|operator)/ { print $2 }' | sort -u)
((${#names[@]} > 100)) || { echo "only ${#names[@]} names were found: ctags does not read the headers" >&2 && exit 1; }
if ((${#names[@]} > most)); then
  echo "${#names[@]} names in namespace fanout, $most at most: ${names[*]}" >&2
  exit 1
fi
echo "${#names[@]} names in namespace fanout"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash tests/public_names.sh ROOT [--record]: compares the names that users may write, with their signatures, with the list
# public_names.txt. Fails if a name came, went or changed. --record writes the list anew: a line that goes breaks programs,
# so it is for CHANGELOG.
#
# These are the names in namespace fanout and in what is in it, but for fanout::detail, and fanout::backend, which is for
# authors of device kinds. Universal Ctags finds them. Ends with 77, skipped, without it, or if it is another version than
# the one that the list was written with, since versions read signatures differently.
set -euo pipefail
export LC_ALL=C
root=$1
list=$root/tests/public_names.txt

version=$(ctags --version 2> /dev/null | sed -n '1s/^\(Universal Ctags [0-9.]*\).*/\1/p')
if [[ -z $version ]]; then
  echo "SKIPPED: Universal Ctags was not found"
  exit 77
fi

# A line for each name: what it is, where, its parameters and its type.
names() {
  ctags -R --languages=C++ --exclude='*.ipp' --kinds-C++=cefgmnpstuv --sort=no -x \
    --_xformat='%s|%K|%N|%S|%t|%a|%{C++.template}' "$root/include" |
    awk -F'|' '
      { line[NR] = $0 }
      $2 ~ /^(class|struct|union|enum|namespace)$/ { is_scope[($1 == "" ? "" : $1 "::") $3] }
      $6 ~ /^(private|protected)$/ { is_closed[$1 "::" $3] }
      # Inside a function, or of what users may not name.
      function is_hidden(scope,  n, i, steps, at) {
        n = split(scope, steps, "::")
        for (i = 1; i <= n; ++i) {
          at = at (i > 1 ? "::" : "") steps[i]
          if (steps[i] ~ /^(detail|backend|__anon.*)$/ || at in is_closed || !(at in is_scope)) return 1
        }
        return 0
      }
      END {
        for (i = 1; i <= NR; ++i) {
          n = split(line[i], f, "|")
          scope = f[1]; kind = f[2]; name = f[3]; signature = f[4]; type = f[5]; access = f[6]; template = f[7]
          if (scope !~ /^fanout::v0/ || name ~ /^__anon/ || access ~ /^(private|protected)$/ || is_hidden(scope)) continue
          if (kind == "namespace" || type ~ /[.]$/) continue  # an expression in a requirement is no declaration
          sub(/^fanout::v0/, "fanout", scope)
          sub(/^typename:/, "", type)
          gsub(/FANOUT_INLINE |FANOUT_HOST_DEVICE /, "", type)
          what = kind ~ /^(class|struct|union|enum|enumerator)$/ ? kind " " : kind == "typedef" ? "using " : ""
          of = kind == "typedef" ? " = " : " -> "
          print what scope "::" name (signature == "-" ? "" : signature) (type == "-" ? "" : of type) \
            (template == "" || template == "-" ? "" : "  [template " template "]")
        }
      }' | sort -u
}

found=$(echo "$version" && names)
count=$(wc -l <<< "$found")
((count > 500)) || { echo "only $count names were found: ctags does not read the headers" >&2 && exit 1; }
if [[ ${2-} == --record ]]; then
  echo "$found" > "$list"
elif [[ $(head -n 1 "$list") != "$version" ]]; then
  echo "SKIPPED: the list was written with $(head -n 1 "$list"), and this is $version"
  exit 77
elif ! diff -u --label "the list" --label "the headers" "$list" <(echo "$found") >&2; then
  echo "the public names differ from $list; if that is meant, write it anew by --record" >&2
  exit 1
fi
echo "$((count - 1)) public names"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash names.sh ROOT: passes if every public name of the library has one home, as the table in ROOT/docs/names.md says.
#
# Fails for a header without a row and a row without a header; a name that a header declares and its row does not list,
# and the other way round; a name listed in two rows, unless one of them only adds overloads to it (`+name`); a header
# with two types, which are two nouns, unless its row says what makes them one; and a name in fwd.hpp without a home.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
headers=$1/include/fanout
table=$1/docs/names.md
errors=0
complain() {
  printf '%s\n' "$*" >&2
  errors=$((errors + 1))
}

declare -A listed joined home
while IFS='|' read -r _ header names reason _; do
  header=${header//[\` ]/}
  [[ $header == *.hpp || $header == *.cuh ]] || continue
  [[ ! -v listed[$header] ]] || complain "$header has two rows in docs/names.md"
  listed[$header]=${names//[\`,]/}
  joined[$header]=${reason// /}
  [[ -e $headers/$header ]] || complain "docs/names.md has a row for $header, which does not exist"
  for name in ${listed[$header]}; do
    [[ $name != +* ]] || continue
    [[ ! -v home[$name] ]] || complain "$name has two homes in docs/names.md: ${home[$name]} and $header"
    home[$name]=$header
  done
done < "$table"

for header in "${!listed[@]}"; do
  for name in ${listed[$header]}; do
    [[ $name != +* || -v home[${name#+}] ]] ||
      complain "$header adds to ${name#+}, which has no home in docs/names.md"
  done
done

count=0
while read -r header; do
  declared=$(awk -f "$here/names.awk" "$headers/$header" | sort -u)
  if [[ ! -v listed[$header] ]]; then
    complain "$header has no row in docs/names.md: it declares" ${declared:-nothing}
    continue
  fi
  row=" ${listed[$header]//+/} "
  types=()
  for name in $declared; do
    [[ $row == *" $name "* ]] || complain "$header declares $name, which its row in docs/names.md does not list"
    [[ ! $name =~ ^[A-Z].*[a-z] ]] || types+=("$name")
    count=$((count + 1))
  done
  for name in $row; do
    grep -qx -- "$name" <<< "$declared" || complain "docs/names.md lists $name for $header, which does not declare it"
  done
  if ((${#types[@]} > 1)) && [[ -z ${joined[$header]} ]]; then
    complain "$header has ${#types[@]} nouns: ${types[*]}; split it, or say in docs/names.md what makes them one"
  fi
  if ((${#types[@]} < 2)) && [[ -n ${joined[$header]} ]]; then
    complain "docs/names.md says what joins the nouns of $header, which has only one"
  fi
done < <(cd "$headers" && find . -mindepth 2 \( -name '*.hpp' -o -name '*.cuh' \) | sed 's,^\./,,' | sort)

# fwd.hpp is nobody's home.
if [[ -e $headers/fwd.hpp ]]; then
  for name in $(awk -f "$here/names.awk" "$headers/fwd.hpp"); do
    [[ -v home[$name] ]] || complain "fwd.hpp declares $name, which no header defines"
  done
fi

((errors == 0)) || exit 1
echo "$count names in ${#listed[@]} headers"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash check.sh TABLE PROGRAM CUDA REFUSED [CMAKE COMPILER [TOGETHER]]: passes if TABLE, docs/conformance.md, has a row for each of
# the rules 1 to 128 and 151 to 204, and each row names test cases that show its rule, or a reason why there is none; at
# most 45 rows have but a reason.
#
# A test case is one of
# - PROGRAM, which is run once;
# - CUDA, the tests of GPUs, named cuda/..., of which those that are named after rules are run once;
# - REFUSED/rule_NNN_*.cpp, named must_not_compile/rule_NNN_*, which COMPILER must refuse; without one it need only be
#   there. TOGETHER is the folder with what must_not_compile/together.sh wrote.
# Where PROGRAM or CUDA is `none`, only the form of the names of its test cases is checked.
# Its name carries the row's number: `rules 3 and 128: ...` stands in both rows. All cases and files that there are stand
# in the table.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
table=$1 program=$2 cuda=$3 refused=$4 cmake=${5-} compiler=${6-} together=${7-}
all_rules=" $(echo {1..128} {151..204}) " most_reasons=45
errors=0
complain() {
  printf '%s\n' "$*" >&2
  errors=$((errors + 1))
}

# rules_of NAME: sets `rules` to the numbers that a test case's name carries, between spaces.
rules_of() {
  rules=
  if [[ $1 =~ ^must_not_compile/rule_([0-9]{3})_ ]]; then
    rules=$((10#${BASH_REMATCH[1]}))
  elif [[ ${1#cuda/} =~ ^rules?\ ([0-9]+((,\ [0-9]+)*\ and\ [0-9]+)?):\  ]]; then
    rules=${BASH_REMATCH[1]//,/}
    rules=${rules/ and / }
  fi
  rules=" $rules "
}

# ---- the table -------------------------------------------------------------------------------------
declare -A row named
reasons=0
while IFS= read -r line; do
  [[ $line =~ ^'| '([0-9]+)' |' ]] || continue
  rule=${BASH_REMATCH[1]}
  [[ ! -v row[$rule] ]] || complain "rule $rule has two rows"
  row[$rule]=1
  [[ $all_rules == *" $rule "* ]] || complain "rule $rule: there is none"
  IFS='|' read -ra cells <<< "$line"
  if ((${#cells[@]} != 5)) || [[ -z ${cells[2]// /} || -z ${cells[3]// /} || -z ${cells[4]// /} ]]; then
    complain "rule $rule: a row has four cells, none of them empty"
    continue
  fi
  shown=${cells[4]# } shown=${shown% }
  if [[ $shown != \`* ]]; then
    reasons=$((reasons + 1))
    continue
  fi
  while [[ $shown =~ ^'`'([^'`']+)'`'(, |$) ]]; do
    name=${BASH_REMATCH[1]}
    shown=${shown#"${BASH_REMATCH[0]}"}
    named[$name]+=" $rule"
    rules_of "$name"
    [[ $rules == *" $rule "* ]] || complain "rule $rule: the name does not carry its number: $name"
  done
  [[ -z $shown ]] || complain "rule $rule: beside its test cases stands: $shown"
done < "$table"
for rule in $all_rules; do
  [[ -v row[$rule] ]] || complain "rule $rule has no row"
done
((reasons <= most_reasons)) || complain "$reasons rules have but a reason: $most_reasons may"

for name in "${!named[@]}"; do
  rules_of "$name"
  for rule in $rules; do
    [[ "${named[$name]} " == *" $rule "* ]] || complain "rule $rule: its row lacks this test case: $name"
  done
done

# ---- the test cases --------------------------------------------------------------------------------
declare -A passed
reports=
# run_cases PREFIX PROGRAM ARGUMENT...: notes in `passed` what became of each of the program's cases, by doctest's XML: a
# line for each case, with its name, and one with its success.
run_cases() {
  local prefix=$1 report line name=
  shift
  report=$("$@" --reporters=xml) || true
  while IFS= read -r line; do
    if [[ $line =~ '<TestCase name="'([^\"]*)'"' ]]; then
      name=${BASH_REMATCH[1]}
      name=${name//'&quot;'/\"} name=${name//'&lt;'/<} name=${name//'&gt;'/>} name=$prefix${name//'&amp;'/'&'}
      # Of the tests of GPUs, those that are named after no rule were not asked for.
      [[ $line != *'skipped="true"'* || ($name == cuda/* && $name != cuda/rule*) ]] || passed[$name]=skipped
    elif [[ $line =~ test_case_success=\"([a-z]+)\" ]]; then
      passed[$name]=${BASH_REMATCH[1]}
    fi
  done <<< "$report"
  [[ $report == *'</doctest>'* ]] || complain "$1 did not come to its end"
  reports+=$report$'\n'
}
[[ $program == none ]] || run_cases '' "$program"
[[ $cuda == none ]] || run_cases cuda/ "$cuda" --test-case='rule*'
not_built=0

for name in "${!passed[@]}"; do
  [[ -n ${named[$name]+x} ]] || complain "a test case that no row names: $name"
done
for name in "${!named[@]}"; do
  if [[ $name == must_not_compile/* ]]; then
    file=$refused/${name#must_not_compile/}.cpp
    if [[ ! -e $file ]]; then
      complain "there is no file $file"
    elif [[ -n $cmake ]]; then
      "$cmake" -D "compiler=$compiler" -D "include=$here/../../include" -D "source=$file" -D "together=$together" \
        -P "$here/../must_not_compile/check.cmake" >&2 || complain "it is not refused as it says: $name"
    fi
    continue
  fi
  [[ $name == cuda/* ]] && from=$cuda || from=$program
  if [[ $from == none ]]; then
    not_built=$((not_built + 1))
    continue
  fi
  case ${passed[$name]-} in
    true) ;;
    '') complain "there is no test case: $name" ;;
    skipped) complain "a test case was not run: $name" ;;
    *)
      complain "a test case failed: $name"
      failed=1
      ;;
  esac
done
for file in "$refused"/rule_*.cpp; do
  name=must_not_compile/$(basename -- "$file" .cpp)
  [[ ! -e $file || -n ${named[$name]+x} ]] || complain "a file that no row names: $name"
done

if ((errors > 0)); then
  [[ -z ${failed-} ]] || grep -v ' skipped="true"' <<< "$reports" >&2
  exit 1
fi
echo "$(wc -w <<< "$all_rules") rules: ${#named[@]} test cases, $reasons reasons"
((not_built == 0)) || echo "$not_built test cases were not looked for: they are not built here"

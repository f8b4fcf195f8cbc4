#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash wrong_trees.sh CMAKE: the tests `arrows`, `refusals` and `conformance` pass on a small right tree, and fail on the same
# tree with one thing wrong, with the words for it.
set -euo pipefail
cmake=$1
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0 cases=0

# header PATH LINE...: writes include/fanout/PATH; its lines stand in the namespace, includes before it.
header() {
  local path=include/fanout/$1 line
  mkdir -p "${path%/*}"
  shift
  : > "$path"
  for line; do [[ $line != '#'* ]] || echo "$line" >> "$path"; done
  echo 'namespace fanout::v0 {' >> "$path"
  for line; do [[ $line == '#'* ]] || echo "$line" >> "$path"; done
  echo '}' >> "$path"
}

# rule N SHOWN: the rule's row in docs/conformance.md.
rule() {
  sed -i "/^| $1 |/d" docs/conformance.md
  echo "| $1 | what it does | what we do | $2 |" >> docs/conformance.md
}

# program [--cuda] [NAME SUCCESS]...: a program of test cases (of GPUs), which prints what doctest prints of them.
program() {
  local to=program
  [[ $1 != --cuda ]] || { to=cuda && shift; }
  printf '%s\n' '#!/bin/sh' 'echo "<doctest>"' > "$to"
  while (($# > 0)); do
    printf "echo '<TestCase name=\"%s\" line=\"1\">'\n" "$1" >> "$to"
    printf "echo '<OverallResultsAsserts successes=\"1\" test_case_success=\"%s\"/>'\n" "$2" >> "$to"
    shift 2
  done
  echo 'echo "</doctest>"' >> "$to"
}

right_tree() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/docs"
  cd "$scratch/tree"
  header base/error.hpp 'class Error {};' 'std::string to_string(const Error& error) { return "};"; }'
  header tree/leaf.hpp '#include <fanout/base/error.hpp>' '#define FANOUT_LEAF 1' \
    'template <class X, std::size_t N = (2 > 1)>' 'struct leaf_traits;' 'template <class X>' \
    'concept Leaf = requires(X x) { x.rows(); };' 'template <> struct leaf_traits<int> {};' \
    'namespace detail { struct Hidden {}; }  // struct Commented {};' \
    'static_assert(true, "fanout: a leaf "' '"has rows");'
  header plan/plan.hpp '#include <fanout/base/error.hpp>' 'class Plan final : Error { void member(); struct Inner {}; };' \
    'template <class T = std::vector<int>> requires std::integral<T> constexpr int check_plan(T t) noexcept(true) {}' \
    'inline std::string to_string(const Plan& plan, int base = 10) { return {}; }' \
    'inline constexpr int most{3};' 'inline void Plan::member() {}' 'Plan(int) -> Plan;'
  header memory/view.hpp '#include <fanout/plan/plan.hpp>' '#include <fanout/tree/leaf.hpp>' 'struct View {};' \
    'enum class Order : int { row, column };' 'using Rows = int;'
  local i name="rules $(seq -s ', ' 1 82) and 83: all"
  all="$name &lt;&amp;&gt;"
  for i in {1..83}; do echo "| $i | does | do | \`$name <&>\` |"; done > docs/conformance.md
  for i in {84..128}; do echo "| $i | does | do | no reason |"; done >> docs/conformance.md
  rule 84 '`rule 84: one`, `must_not_compile/rule_084_two`'
  GPUs="rules $(seq -s ', ' 151 203) and 204: GPUs"
  for i in {151..204}; do echo "| $i | does | do | \`cuda/$GPUs\` |"; done >> docs/conformance.md
  program "$all" true 'rule 84: one' true
  program --cuda "$GPUs" true
  mkdir must_not_compile
  echo '// expect: two' > must_not_compile/rule_084_two.cpp
  printf '%s\n' '#!/bin/sh' 'case $* in *FANOUT_CONTROL*) exit 0 ;; esac' 'echo "error: two"; exit 1' > compiler
  chmod +x program cuda compiler
  mkdir -p tests/must_not_compile
  echo '// expect: fanout: a leaf has' > tests/must_not_compile/leaf.cpp
}

arrows() { "$cmake" -D "root=$PWD" -P "$here/arrows.cmake" 2>&1; }
refusals() { bash "$here/refusals.sh" "$PWD" 2>&1; }
conformance() {
  bash "$here/conformance/check.sh" docs/conformance.md ./program ./cuda must_not_compile "$cmake" "$PWD/compiler" 2>&1
}

without_cuda() { bash "$here/conformance/check.sh" docs/conformance.md ./program none must_not_compile 2>&1; }

# refuses TEST WORDS: the test fails on the tree as it is, with these words, which CMake may have wrapped.
refuses() {
  local output
  cases=$((cases + 1))
  if output=$("$1"); then
    echo "$1 passes where it should say: $2" >&2
  elif ! grep -qF -- "$2" <<< "$output"; then
    printf '%s does not say: %s\nbut\n%s\n' "$1" "$2" "$output" >&2
  else
    right_tree
    return
  fi
  failures=$((failures + 1))
  right_tree
}

right_tree
arrows > /dev/null || { echo "arrows fails on the right tree" >&2; arrows >&2 || true; exit 1; }
refusals > /dev/null || { echo "refusals fails on the right tree" >&2; refusals >&2 || true; exit 1; }
conformance > /dev/null || { echo "conformance fails on the right tree" >&2; conformance >&2 || true; exit 1; }

grep -qF '1 test cases were not looked for: they are not built here' <<< "$(without_cuda)" ||
  { echo "conformance does not say what it did not look for" >&2; exit 1; }

header base/error.hpp '#include <fanout/memory/view.hpp>' 'class Error {};'
refuses arrows 'base/error.hpp includes memory/view.hpp: base may not know memory'

header memory/view.hpp '__global__ void kernel() {}'
refuses arrows 'memory/view.hpp has what matches `__global__|<<<`'

header memory/view.hpp '#include <cuda_runtime_api.h>'
refuses arrows 'memory/view.hpp has what matches `include <cu(da)?[._]`'

header tree/leaf.hpp '#include <fanout/plan/plan.hpp>'
refuses arrows 'tree/leaf.hpp includes plan/plan.hpp: tree may not know plan'

header memory/view.hpp '#  include <fanout/memory/tensor.hpp>'
header memory/tensor.hpp '#include <fanout/memory/view.hpp>'
refuses arrows 'in a circle, or include such: memory/tensor.hpp, memory/view.hpp'

header memory/view.hpp '#include <fanout/memory/view.hpp>'
refuses arrows 'in a circle, or include such: memory/view.hpp'

header memory/view.hpp '#include "fanout/plan/plan.hpp"'
refuses arrows "the library's headers are included as <fanout/...>"

header memory/view.hpp '#include <fanout/plan/plans.hpp>'
refuses arrows 'memory/view.hpp includes plan/plans.hpp, which does not exist'

header fanout.hpp '#include <fanout/memory/view.hpp>'
header memory/view.hpp '#include <fanout/fanout.hpp>'
refuses arrows 'memory/view.hpp includes the umbrella fanout.hpp: nothing inside may'

header other/thing.hpp 'struct Thing {};'
refuses arrows 'other/thing.hpp: the folder other has no place in tests/arrows.cmake yet'

sed -i '/^| 7 |/d' docs/conformance.md
refuses conformance 'rule 7 has no row'

sed -n '/^| 7 |/p' docs/conformance.md > again
cat again >> docs/conformance.md
refuses conformance 'rule 7 has two rows'

rule 129 'a reason'
refuses conformance 'rule 129: there is none'

rule 128 ''
refuses conformance 'rule 128: a row has four cells, none of them empty'

rule 84 'a reason'
rule 83 'a reason'
refuses conformance '46 rules have but a reason: 45 may'

rule 83 '`rule 84: one`'
refuses conformance 'rule 83: the name does not carry its number: rule 84: one'

rule 83 '`must_not_compile/rule_084_two`'
refuses conformance 'rule 83: the name does not carry its number: must_not_compile/rule_084_two'

rule 83 '`rule 83: another`'
program "$all" true 'rule 84: one' true 'rule 83: another' true
refuses conformance 'rule 83: its row lacks this test case: rules 1, 2,'

rule 84 '`rule 84: one` and more'
refuses conformance 'rule 84: beside its test cases stands: `rule 84: one` and more'

program "$all" true
refuses conformance 'there is no test case: rule 84: one'

program "$all" true 'rule 84: one' false
refuses conformance 'a test case failed: rule 84: one'

program "$all" true
sed -i '$i echo "<TestCase name=\\"rule 84: one\\" skipped=\\"true\\"/>"' program
refuses conformance 'a test case was not run: rule 84: one'

program "$all" true 'rule 84: one' true 'rule 84: three' true
refuses conformance 'a test case that no row names: rule 84: three'

sed -i '$d' program
refuses conformance './program did not come to its end'

program --cuda 'rule 151: another' true
refuses conformance 'there is no test case: cuda/rules 151, 152,'

program --cuda "$GPUs" true 'rule 151: another' true
refuses conformance 'a test case that no row names: cuda/rule 151: another'

program --cuda "$GPUs" false
refuses conformance 'a test case failed: cuda/rules 151, 152,'

rule 151 '`cuda/rule 152: another`'
refuses without_cuda 'rule 151: the name does not carry its number: cuda/rule 152: another'

rm must_not_compile/rule_084_two.cpp
refuses conformance 'there is no file must_not_compile/rule_084_two.cpp'

touch must_not_compile/rule_085_three.cpp
refuses conformance 'a file that no row names: must_not_compile/rule_085_three'

printf '%s\n' '#!/bin/sh' > compiler
refuses conformance 'it is not refused as it says: must_not_compile/rule_084_two'

header base/error.hpp 'static_assert(N > 1, "fanout: not one, "' '"and not none");'
refuses refusals 'error.hpp refuses with a sentence that no test expects: "fanout: not one, and not none"'

rm tests/must_not_compile/leaf.cpp
refuses refusals 'refuses with a sentence that no test expects: "fanout: a leaf has rows"'

((failures == 0)) || exit 1
echo "$cases wrong trees refused"

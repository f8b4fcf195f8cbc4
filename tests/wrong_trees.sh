#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash wrong_trees.sh CMAKE: the tests `arrows` and `names` pass on a small right tree, and fail on the same tree with one
# thing wrong, with the words for it.
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
  echo 'namespace fanout::inline v0 {' >> "$path"
  for line; do [[ $line == '#'* ]] || echo "$line" >> "$path"; done
  echo '}' >> "$path"
}

# row PATH NAMES [REASON]: the header's row in docs/names.md.
row() {
  mkdir -p docs
  [[ ! -e docs/names.md ]] || sed -i "\\,| \`$1\` ,d" docs/names.md
  echo "| \`$1\` | $2 | ${3-} |" >> docs/names.md
}

right_tree() {
  rm -rf "$scratch/tree"
  mkdir "$scratch/tree"
  cd "$scratch/tree"
  header base/error.hpp 'class Error {};' 'std::string to_string(const Error& error) { return "};"; }'
  header tree/leaf.hpp '#include <fanout/base/error.hpp>' '#define FANOUT_LEAF 1' \
    'template <class X, std::size_t N = (2 > 1)>' 'struct leaf_traits;' 'template <class X>' \
    'concept Leaf = requires(X x) { x.rows(); };' 'template <> struct leaf_traits<int> {};' \
    'namespace detail { struct Hidden {}; }  // struct Commented {};'
  header plan/plan.hpp '#include <fanout/base/error.hpp>' 'class Plan final : Error { void member(); struct Inner {}; };' \
    'template <class T = std::vector<int>> requires std::integral<T> constexpr int check_plan(T t) noexcept(true) {}' \
    'inline std::string to_string(const Plan& plan, int base = 10) { return {}; }' \
    'inline constexpr int most{3};' 'inline void Plan::member() {}' 'Plan(int) -> Plan;'
  header memory/view.hpp '#include <fanout/plan/plan.hpp>' '#include <fanout/tree/leaf.hpp>' 'struct View {};' \
    'enum class Order : int { row, column };' 'using Rows = int;'
  row base/error.hpp '`Error`, `to_string`'
  row tree/leaf.hpp '`Leaf`, `leaf_traits`, `FANOUT_LEAF`'
  row plan/plan.hpp '`Plan`, `check_plan`, `+to_string`, `most`'
  row memory/view.hpp '`View`, `Order`, `Rows`' 'a view has an order'
}

arrows() { "$cmake" -D "root=$PWD" -P "$here/arrows.cmake" 2>&1; }
names() { bash "$here/names.sh" "$PWD" 2>&1; }

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
names > /dev/null || { echo "names fails on the right tree" >&2; names >&2 || true; exit 1; }

header base/error.hpp '#include <fanout/memory/view.hpp>' 'class Error {};'
refuses arrows 'base/error.hpp includes memory/view.hpp: base may not know memory'

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

row memory/view.hpp '`View`, `Order`, `Rows`'
refuses names 'memory/view.hpp has 3 nouns: Order Rows View; split it'

header plan/plan.hpp 'class Plan {};' 'template <class T>' 'struct Shard {' '  int rows;' '};'
row plan/plan.hpp '`Plan`, `Shard`'
refuses names 'plan/plan.hpp has 2 nouns: Plan Shard; split it'

row plan/plan.hpp '`Plan`, `check_plan`, `+to_string`, `most`' 'it reads well'
refuses names 'says what joins the nouns of plan/plan.hpp, which has only one'

header plan/plan.hpp 'class Plan {};' 'int check_plan();' 'std::string to_string(const Plan&);' \
  'inline constexpr int most = 3;' 'inline int hidden_helper(int i = 0) { return i; }'
refuses names 'plan/plan.hpp declares hidden_helper, which its row in docs/names.md does not list'

row plan/plan.hpp '`Plan`, `check_plan`, `+to_string`, `most`, `least`'
refuses names 'docs/names.md lists least for plan/plan.hpp, which does not declare it'

row plan/plan.hpp '`Plan`, `check_plan`, `to_string`, `most`'
refuses names 'to_string has two homes in docs/names.md: base/error.hpp and plan/plan.hpp'

row base/error.hpp '`Error`, `+to_string`'
refuses names 'adds to to_string, which has no home in docs/names.md'

header memory/tensor.hpp 'class Tensor {};'
refuses names 'memory/tensor.hpp has no row in docs/names.md: it declares Tensor'

rm include/fanout/memory/view.hpp
refuses names 'docs/names.md has a row for memory/view.hpp, which does not exist'

echo "| \`plan/plan.hpp\` | | |" >> docs/names.md
refuses names 'plan/plan.hpp has two rows in docs/names.md'

header fwd.hpp 'class Plan;' 'template <class T>' 'struct leaf_traits;' 'class Gone;'
refuses names 'fwd.hpp declares Gone, which no header defines'

((failures == 0)) || exit 1
echo "$cases wrong trees refused"

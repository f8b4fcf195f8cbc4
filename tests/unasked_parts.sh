#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# bash unasked_parts.sh ROOT COMPILER: passes if a program that sets no options has no code of their parts in its object
# file, header-only and optimised, and if a program that sets them has it. The same for asynchronous calls.
set -euo pipefail
export LC_ALL=C
root=$1 compiler=$2
cd -- "$root"
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

# What a part is recognised by: symbols of its functions.
declare -A symbols=(
  [dealing]='detail::(Deal::|begin_deal|end_deal)'
  [deadlines]='detail::(tell|throw)_late_shards|Timeout::Timeout'
  [measuring]='detail::(ShardClock|CallTotals|MeasuredCalls)::|CallClock::[a-z_]+\('
  [recovery]='detail::(Recovery|DeviceHealth|MemoryLimits)::|detail::(recover|run_again|note_limits|why_not_again)\('
  [asynchronous calls]='AsyncCalls::(post|wait|help|end|take_back_any)\('
  [ranks]='RankedSteps::(set|begin|join|combine|tell|end)\('
)
options='.split = fanout::DealtSplit{}, .measure = true, .deadline = std::chrono::milliseconds(50), .retry = {.times = 1},
  .ranks = several'

# program NAME OPTIONS CALL: its functions, as nm shows them.
program() {
  cat > "$folder/$1.cpp" << END
#include <chrono>
#include <tuple>
#include <vector>
#include <fanout/fanout.hpp>
#include <fanout/plan/dealt_split.hpp>
extern const fanout::backend::ProcessRanks* several;
struct Halves {
  auto forward(auto& ctx, std::span<const double> rows) const {
    auto half = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < rows.size(); ++i) half(i) = rows[i] / 2;
    return std::tuple(half, fanout::psum(1.0));
  }
};
double halves(const std::vector<double>& x) {
  const fanout::ParallelModel model(Halves{}, fanout::host_devices(2), fanout::Options{$2});
  return std::get<1>($3);
}
END
  "$compiler" -std=c++20 -O2 -w -I include -c "$folder/$1.cpp" -o "$folder/$1.o"
  nm --demangle --defined-only "$folder/$1.o" | awk '$2 ~ /[TtWw]/' | cut -d' ' -f3-
}

wrong=0
say() { echo "$*" >&2 && wrong=$((wrong + 1)); }
plain=$(program plain '' 'model(x)')
later=$(program later '' 'model.async(x).get()')
asking=$(program asking "$options" 'model.async(x).get()')
[[ $plain == *ParallelModel* ]] || say "nm shows no functions"

# without PART PROGRAM FUNCTIONS: fails if there is code of the part among them.
without() {
  local found
  found=$(grep -E "${symbols[$1]}" <<< "$3" | head -n 3) || return 0
  say "$2 has code of $1:"$'\n'"$found"
}
for part in "${!symbols[@]}"; do
  without "$part" "a program without options" "$plain"
  [[ $part == asynchronous* ]] || without "$part" "a program with asynchronous calls" "$later"
  grep -qE "${symbols[$part]}" <<< "$asking" || say "a program that asks for $part has nothing that looks like it"
done
((wrong == 0)) && echo "${#symbols[@]} parts are only in programs that ask for them"

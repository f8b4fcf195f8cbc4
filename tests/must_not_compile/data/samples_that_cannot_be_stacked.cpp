// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: samples of this type cannot be stacked
// expect: give the loader a collate function: Loader{dataset, options, collate}
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <fanout/data.hpp>

int main() {
#ifdef FANOUT_CONTROL
  using Words = std::vector<int>;
#else
  using Words = std::set<int>;
#endif
  const fanout::Loader loader{std::vector<std::pair<int, Words>>(), {.batch = 2}};
  for (auto&& [number, words] : loader.epoch(0)) (void)words;
}

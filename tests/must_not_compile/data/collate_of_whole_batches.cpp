// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this dataset makes whole batches, so a collate function has nothing to do; leave it out
#include <cstddef>
#include <span>
#include <vector>

#include <fanout/data.hpp>

struct Dataset {
  std::size_t size() const { return 3; }
#ifdef FANOUT_CONTROL
  int operator[](std::size_t i) const { return static_cast<int>(i); }
#else
  int operator()(std::span<const std::size_t> samples) const { return static_cast<int>(samples.size()); }
#endif
};

int main() {
  const fanout::Loader loader{Dataset(), {.batch = 2}, [](const std::vector<int>& samples) { return samples; }};
  for (auto&& batch : loader.epoch(0)) (void)batch;
}

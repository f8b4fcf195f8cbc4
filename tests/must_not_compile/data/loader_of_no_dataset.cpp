// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a loader needs a dataset with size() and operator[](i), or with size() and a call operator
// expect: both must be const, since workers call them at the same time
#include <cstddef>

#include <fanout/data.hpp>

struct Dataset {
  std::size_t size() const { return 3; }
#ifdef FANOUT_CONTROL
  int operator[](std::size_t i) const { return static_cast<int>(i); }
#else
  int operator[](std::size_t i) { return static_cast<int>(i); }
#endif
};

int main() {
  const fanout::Loader loader{Dataset(), {.batch = 2}};
  for (auto&& batch : loader.epoch(0)) (void)batch;
}

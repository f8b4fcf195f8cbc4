// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: save() and load() take arrays, numbers, texts, and trees and models of these
// expect: Hidden
#include <vector>

#include <fanout/state.hpp>

using namespace fanout::literals;

class Hidden {
 public:
  explicit Hidden(int number) : number_(number) {}
#ifdef FANOUT_CONTROL
  friend auto fields(const Hidden*) { return fanout::dict("number"_k = &Hidden::number_); }
#endif

 private:
  int number_;
};

int main() { fanout::save("file", std::vector{Hidden(1)}); }

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that crash.py kills, and whose disk it fills.
//
//     saver forever FILE FIRST  saves the states FIRST, FIRST + 1, ... and says each number when it has been saved
//     saver once FILE NUMBER    saves one state; ends with 3 and the reason if that fails
//     saver check FILE          loads the file, says the number of the state in it, and fails unless all of it is there

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/state/load.hpp>
#include <fanout/state/save.hpp>

namespace {

/// A state of about 1 MB, all of whose values are its number.
struct Numbered {
  std::vector<fanout::Tensor<double, 1>> arrays;
  long number = 0;
  std::string text;

  static Numbered blank() {
    return {std::vector<fanout::Tensor<double, 1>>(32, fanout::Tensor<double, 1>(4000)), 0, {}};
  }
  static Numbered of(long number) {
    Numbered state = blank();
    for (auto& array : state.arrays) {
      for (double& x : array) x = static_cast<double>(number);
    }
    state.number = number;
    state.text = std::string(static_cast<std::size_t>(number % 1000), 'x') + std::to_string(number);
    return state;
  }
  friend bool operator==(const Numbered&, const Numbered&) = default;
};

}  // namespace

int main(int count, char** arguments) try {
  const std::string what = count > 2 ? arguments[1] : "", path = count > 2 ? arguments[2] : "";
  if (what == "forever" && count > 3) {
    for (long number = std::stol(arguments[3]);; ++number) {
      fanout::save(path, Numbered::of(number));
      std::printf("%ld\n", number);
      std::fflush(stdout);
    }
  }
  if (what == "once" && count > 3) {
    try {
      fanout::save(path, Numbered::of(std::stol(arguments[3])));
    } catch (const fanout::Error& error) {
      std::printf("%s\n", error.what());
      return 3;
    }
    return 0;
  }
  if (what == "check") {
    Numbered state = Numbered::blank();
    fanout::load(path, state);
    std::printf("%ld\n", state.number);
    return state == Numbered::of(state.number) ? 0 : 1;
  }
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two units that include everything and use a model link into one program: no definition in a header is doubled, and
// there is one registry, one worker for each device and one chain of calls in each thread.
#include <cstdio>

#include "model.hpp"

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("does not hold: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  const SeenBySecond seen = seen_by_second();
  check(seen.version == FANOUT_VERSION, "one version");
  check(seen.registry == &fanout::backend::registry(), "one registry");
  check(seen.worker == &fanout::host_devices(2)[1].worker(), "one worker for a device");

  fanout::Tensor<float, 1> x(5);
  for (std::size_t i = 0; i < 5; ++i) x[i] = static_cast<float>(i);
  Parallel model{Model{}, fanout::host_devices(2)};
  using namespace fanout::literals;
  const auto [twice, extras] = model(x);
  check(twice[4] == 8 && extras["rows"_k] == 5 && extras["first"_k][1] == 3, "a call in the first unit");
  check(sum_in_second(x) == 20, "a call in the second unit");

  // The second unit knows that the first is inside of a call of this model.
  std::string error;
  std::string* const to = &error;
  Parallel* const self = &model;
  model.update([self, to](Model& original) {
    original.inside = [self, to] {
      if (to->empty()) *to = update_in_second(*self);
    };
  });
  (void)model(fanout::Tensor<float, 1>(1));
  check(error.find("inside its own forward") != std::string::npos, "one chain of calls");
  check(update_in_second(model).empty(), "an update in the second unit");
  check(only_names(model, nullptr, &x, nullptr, nullptr, nullptr, nullptr) == &model, "one type for each name");
  return failures;
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: share it as a Shared<T>, copy it in a `M to(const Device&) const` of the model
#include <fanout/fanout.hpp>

struct Model {
  int* calls;
  int forward(fanout::View<const float, 1>) const { return ++*calls; }
#ifdef FANOUT_CONTROL
  Model to(const fanout::HostDevice&) const { return *this; }
#endif
};

int main() {
  int calls = 0;
  const fanout::ParallelModel shares{Model{&calls}};  // its forward is const, so it is not copied
  const fanout::ParallelModel model{fanout::per_replica(Model{&calls})};
  const fanout::Tensor<float, 1> x(4);
  return shares(x).size() == model(x).size() ? 0 : 1;
}

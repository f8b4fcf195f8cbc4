// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the copies of this model would all change one object through a pointer, a reference or a view
// expect: FieldAt<std::shared_ptr<std::vector<int
#include <memory>
#include <vector>

#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  std::vector<int> log;
#else
  std::shared_ptr<std::vector<int>> log = std::make_shared<std::vector<int>>();
#endif
  int calls = 0;
  int forward(fanout::View<const float, 1>) { return ++calls; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  (void)model(fanout::Tensor<float, 1>(4));
}

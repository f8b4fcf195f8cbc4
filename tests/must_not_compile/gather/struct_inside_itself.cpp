// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the result of forward cannot be gathered
#include <vector>

#include <fanout/fanout.hpp>

struct Node {
  fanout::Tensor<float, 1> values;
  std::vector<Node> children;
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
    Node root{fanout::Tensor<float, 1>(x), {}};
#ifdef FANOUT_CONTROL
    return fanout::PerShard<Node>(root);
#else
    return root;
#endif
  }};
  model(fanout::Tensor<float, 1>(4));
}

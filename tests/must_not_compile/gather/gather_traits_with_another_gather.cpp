// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: gather_traits of this type needs a `type` and a `gather` that fits
// expect: Counts
#include <fanout/fanout.hpp>

class Counts {
 public:
  explicit Counts(std::size_t count) : count_(count) {}

 private:
  std::size_t count_;
};

template <>
struct fanout::gather_traits<fanout::rules::Concatenate, Counts> {
  using type = std::size_t;
#ifdef FANOUT_CONTROL
  static std::size_t gather(const ShardResults<Counts>& results, const GatherTarget&, const LeafPath&) {
    return results.size();
  }
#else
  static std::size_t gather(const std::vector<Counts>& results) { return results.size(); }
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) { return Counts(x.size()); }};
  (void)model(fanout::Tensor<float, 1>(4));
}

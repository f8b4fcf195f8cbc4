// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: an mdspan is split by its strides, but this layout has none; specialise fanout::backend::strided_layout for it, or pass broadcast(x)
#include <adapt/other_mdspan.hpp>
#include <fanout/adapt/mdspan.hpp>
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  using Layout = other::layout_right;
#else
  using Layout = other::layout_mirrored;
#endif
  using Extents = other::extents<int, std::dynamic_extent>;
  using Mirrored = other::mdspan<const int, Extents, Layout>;
  const int numbers[3] = {1, 2, 3};
  const Extents three(std::array{3});
  const fanout::ParallelModel model{[](const auto& x) { return x.extent(0); }};
  model(Mirrored(numbers, Mirrored::mapping_type(three), three));
}

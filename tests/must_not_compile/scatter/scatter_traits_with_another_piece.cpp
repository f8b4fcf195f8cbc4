// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: scatter_traits of this type has no `piece` that fits
// expect: Halo
#include <fanout/fanout.hpp>

struct Halo {
  fanout::View<const double, 1> array;
};

template <>
struct fanout::scatter_traits<Halo> {
  using piece_type = std::size_t;
#ifdef FANOUT_CONTROL
  static std::size_t piece(const Halo&, const ScatterTarget& target, const LeafPath&) { return target.rows.size(); }
#else
  static std::size_t piece(Halo& x, const ScatterTarget&) { return x.array.size(); }
#endif
  static void visit_rows(const Halo& x, int, const LeafPath& path, auto& f) { f(x.array.size(), path); }
};
template <>
inline constexpr bool fanout::splits_itself<Halo> = true;

int main() {
  const fanout::ParallelModel model{[](std::size_t rows) { return rows; }};
  const fanout::Tensor<double, 1> array(4);
  (void)model(Halo{array});
}

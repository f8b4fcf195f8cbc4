// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: scatter_traits of this type has a visit_rows, which nobody calls; specialise splits_itself
#include <fanout/fanout.hpp>

struct Numbers {
  explicit Numbers(std::size_t numbers) : count(numbers) {}
  std::size_t count;
};

template <>
struct fanout::scatter_traits<Numbers> {
  using piece_type = std::size_t;
  static std::size_t piece(const Numbers&, const ScatterTarget& target, const LeafPath&) { return target.rows.size(); }
  static void visit_rows(const Numbers& x, int, const LeafPath& path, auto& f) { f(x.count, path); }
};
#ifdef FANOUT_CONTROL
template <>
inline constexpr bool fanout::splits_itself<Numbers> = true;
#endif

int main() {
  const fanout::ParallelModel model{[](std::size_t rows) { return rows; }};
  (void)model(Numbers(7));
}

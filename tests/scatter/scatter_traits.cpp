// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/scatter_traits.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

/// Rows without any array that could be seen.
class Numbers {
 public:
  explicit Numbers(int count) : count_(count) {}
  int count() const { return count_; }

 private:
  int count_;
};

}  // namespace

template <>
struct fanout::scatter_traits<Numbers> {
  using piece_type = std::pair<std::size_t, std::size_t>;

  static piece_type piece(const Numbers&, const ScatterTarget& target, const LeafPath&) {
    return {target.rows.first, target.rows.last};
  }
  static void visit_rows(const Numbers& x, int, const LeafPath& path, auto& f) {
    f(static_cast<std::size_t>(x.count()), path);
  }
};
template <>
inline constexpr bool fanout::splits_itself<Numbers> = true;

namespace {

struct Mesh {
  std::string name;
  std::vector<int> faces;
};

struct Step {
  auto forward(Context auto& ctx, View<const float, 2> x, const Tensor<float, 2>& table, View<const float, 2> series,
               View<float, 1> state, std::span<const Mesh> meshes, fanout::RowRange rows,
               const std::vector<std::string>& names) const {
    CHECK(x.extent(0) == 3);
    CHECK(table.extent(0) == 9);
    CHECK(series.extent(1) == 3);
    CHECK(meshes.size() == 3);
    CHECK(rows == ctx.rows());
    CHECK(names.size() == 2);
    for (float& value : state) value += 1;
    return fanout::sharded(x);
  }
};

}  // namespace

TEST_CASE("the documentation's example of input rules") {
  const Tensor<float, 2> x(6, 2);
  const Tensor<float, 2> table(9, 9);
  const Tensor<float, 2> series(4, 6);
  Tensor<float, 1> state(6);
  const std::vector<Mesh> meshes(6);
  const std::vector<std::string> names{"a", "b"};
  const ParallelModel model{Step{}, host_devices(2)};
  using namespace fanout;
  // [choices]
  auto next = model(x,                 // [6, 2]: rows
                    broadcast(table),  // the whole of it, to everyone
                    split<1>(series),  // [4, 6]: columns
                    inout(state),      // [6]: rows, which forward writes in place
                    rows(meshes),      // 6 structs: some of them, whatever they hold
                    Range{6},          // no data: the rows that are this shard's
                    each(names));      // 2 strings: no rows, but a list for everyone
  // [/choices]
  CHECK(state[5] == 1);
  CHECK(next.size() == 2);
  CHECK(next[1].extents() == Extents<2>{3, 2});
}

TEST_CASE("rows that only visit_rows knows are split, in a tuple too, and must agree with the others") {
  const auto size = [](const std::pair<std::size_t, std::size_t>& rows) { return rows.second - rows.first; };
  const fanout::ParallelModel model{[size](const auto& rows) { return fanout::psum(size(rows)); },
                                    fanout::host_devices(3)};
  CHECK(model(Numbers(7)) == 7);
  CHECK(model.plan(7).size() == 3);
  const fanout::ParallelModel inside{[size](const auto& x) { return size(std::get<0>(x)); }, fanout::host_devices(3)};
  CHECK(inside(std::tuple(Numbers(7), 1)).extent(0) == 3);
  const fanout::ParallelModel both{[](const auto&, fanout::View<const double, 1>) { return 1; },
                                   fanout::host_devices(3)};
  CHECK_THROWS_AS(both(Numbers(7), std::vector{1.0}), fanout::ShapeMismatch);
}

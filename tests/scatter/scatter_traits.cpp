// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/scatter_traits.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/gather/join_pieces.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>

#include "device/remote_device.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;

namespace {

Tensor<float, 2> counted(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> x(rows, columns);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

/// Each row's columns that are this shard's, or its rows, as a tensor that stands by itself.
Tensor<float, 2> copied(const View<const float, 2>& x) { return Tensor<float, 2>(x); }

}  // namespace

TEST_CASE("tensors that forward returns are concatenated on any axis, whatever their size") {
  for (const std::size_t devices : {1U, 2U, 3U}) {
    for (const std::size_t columns : {1U, 5U, 300U, 500000U}) {
      for (const std::size_t bytes : {std::size_t{1000}, std::size_t{300000}, std::size_t{5000000}}) {
        CAPTURE(devices);
        CAPTURE(columns);
        CAPTURE(bytes);
        const Tensor<float, 2> x = counted(bytes / columns / 4, columns);
        const ParallelModel by_rows{copied, host_devices(static_cast<int>(devices))};
        const Tensor<float, 2> rows = by_rows(x);
        REQUIRE(rows.extents() == x.extents());
        CHECK(std::equal(x.begin(), x.end(), rows.begin()));
        const ParallelModel by_columns{copied, host_devices(static_cast<int>(devices)), {.axis = 1}};
        const Tensor<float, 2> joined = by_columns(x);
        REQUIRE(joined.extents() == x.extents());
        CHECK(std::equal(x.begin(), x.end(), joined.begin()));
      }
    }
  }
}

TEST_CASE("a large result is concatenated inside nested and asynchronous calls too") {
  const Tensor<float, 2> x = counted(1000, 1000);
  const ParallelModel inner{copied, host_devices(2)};
  const ParallelModel outer{[&inner](const View<const float, 2>& rows) { return inner(rows); }, host_devices(2)};
  const Tensor<float, 2> nested = outer(x);
  CHECK(std::equal(x.begin(), x.end(), nested.begin()));
  auto pending = [&x] {
    const ParallelModel gone{copied, host_devices(2)};
    return gone.async(x);
  }();
  const Tensor<float, 2> late = pending.get();
  CHECK(std::equal(x.begin(), x.end(), late.begin()));
}

TEST_CASE("strided slices that forward returns are packed in order") {
  for (const std::size_t rows : {0U, 7U, 3001U}) {
    const Tensor<float, 2> x = counted(rows, 300);
    const auto columns = [](const fanout::StridedView<const float, 2>& part) { return part.slice(1, {2, 130}); };
    const ParallelModel model{columns, host_devices(3)};
    const Tensor<float, 2> result = model(x);
    REQUIRE(result.extents() == fanout::Extents<2>{rows, 128});
    bool same = true;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < 128; ++k) same = same && result(i, k) == x(i, k + 2);
    }
    CHECK(same);
  }
}

TEST_CASE("a result is copied once, straight into the caller's destination") {
  const Tensor<float, 2> x = counted(1000, 300);
  Tensor<float, 2> result(1000, 300);
  const float* const data = result.data();
  const ParallelModel model{copied, host_devices(2)};
  fanout::empty_host_cache();
  model.into(result)(x);
  CHECK(std::equal(x.begin(), x.end(), result.begin()));
  CHECK(result.data() == data);
  // The shards' own tensors were there, and no gathered one.
  CHECK(fanout::host_memory_cached() < 2 * 1000 * 300 * sizeof(float));
}

TEST_CASE("arrays in a device's own memory are concatenated there on any axis") {
  const Tensor<float, 2> x = counted(4, 7);
  for (const int axis : {0, 1}) {
    CAPTURE(axis);
    const ParallelModel model{
        [](const View<const float, 2>& part) { return part; }, fanout_test::remote_devices(3), {.axis = axis}};
    const Tensor<float, 2> joined = fanout::to_host(model(x));
    REQUIRE(joined.extents() == x.extents());
    CHECK(std::equal(x.begin(), x.end(), joined.begin()));
  }
}

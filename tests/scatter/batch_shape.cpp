// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/batch_shape.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>

using fanout::Tensor;
using fanout::detail::batch_shape;

namespace {

std::uint64_t shape_of(const auto&... arguments) { return batch_shape(std::tie(arguments...)); }

}  // namespace

TEST_CASE("batches that differ only in their rows have one shape") {
  const Tensor<float, 2> x(30, 5);
  CHECK(shape_of(x) == shape_of(Tensor<float, 2>(7, 5)));
  CHECK(shape_of(x) != shape_of(Tensor<float, 2>(30, 6)));
  CHECK(shape_of(x) != shape_of(Tensor<double, 2>(30, 5)));
  CHECK(shape_of(x) != shape_of(Tensor<float, 3>(30, 5, 2)));
  CHECK(shape_of(x) != shape_of(x, x));
  CHECK(shape_of(x, Tensor<float, 2>(30, 6)) != shape_of(Tensor<float, 2>(30, 6), x));
  CHECK(shape_of(std::tuple(Tensor<float, 2>(3, 5), 1.0)) == shape_of(std::tuple(Tensor<float, 2>(4, 5), 2.0)));
  CHECK(shape_of(std::vector<int>(3)) == shape_of(std::vector<int>(4)));
  CHECK(shape_of() == shape_of(1, std::string("x")));
}

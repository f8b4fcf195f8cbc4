// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/batch_shape.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/scatter/inout.hpp>
#include <fanout/scatter/split_on.hpp>
#include <fanout/tree/leaf.hpp>

using fanout::Tensor;
using fanout::detail::batch_shape;

namespace batch_shape_test {

/// A matrix as other libraries have it.
struct Matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

}  // namespace batch_shape_test

template <>
struct fanout::leaf_traits<batch_shape_test::Matrix> {
  using Matrix = batch_shape_test::Matrix;
  using piece_type = Matrix;
  static std::size_t rows(const Matrix& x) { return x.rows; }
  static Matrix piece(const Matrix& x, std::size_t begin, std::size_t end) { return {end - begin, x.columns}; }
  static std::span<const std::byte> bytes(const Matrix& x) {
    static const std::vector<std::byte> memory(1000);
    return {memory.data(), x.rows * x.columns};
  }
};

namespace {

std::uint64_t shape_of(const auto&... arguments) { return batch_shape(0, std::tie(arguments...)); }

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
  CHECK(shape_of(std::vector<int>(3)) != shape_of(std::vector<char>(3)));
  CHECK(shape_of(std::vector<std::string>(3, "long, long, long, long, long")) == shape_of(std::vector<std::string>(1)));
  CHECK(shape_of() == shape_of(1, std::string("x")));
}

TEST_CASE("the axis that is split does not count, whichever it is") {
  const Tensor<float, 2> x(4, 1000);
  const auto on = [](int axis, const auto& array) { return batch_shape(axis, std::tie(array)); };
  CHECK(on(1, x) == on(1, Tensor<float, 2>(4, 999)));
  CHECK(on(-1, x) == on(1, x));
  CHECK(on(1, x) != on(1, Tensor<float, 2>(1, 1000)));
  CHECK(shape_of(fanout::split<1>(x)) == on(1, x));
  CHECK(shape_of(fanout::split<1>(x)) == shape_of(fanout::split<1>(Tensor<float, 2>(4, 3))));
  Tensor<float, 2> y(7, 1000);
  CHECK(shape_of(fanout::inout(y)) == shape_of(y));
}

TEST_CASE("arrays that do not tell their extents have the shape of their rows") {
  const batch_shape_test::Matrix x{.rows = 4, .columns = 5};
  CHECK(shape_of(x) == shape_of(batch_shape_test::Matrix{.rows = 9, .columns = 5}));
  CHECK(shape_of(x) != shape_of(batch_shape_test::Matrix{.rows = 4, .columns = 50}));
  CHECK(shape_of(fanout::broadcast(x)) != shape_of(fanout::broadcast(batch_shape_test::Matrix{9, 5})));
}

TEST_CASE("all extents of an argument that is sent whole count") {
  const Tensor<float, 1> table(5000);
  CHECK(shape_of(fanout::broadcast(table)) != shape_of(fanout::broadcast(Tensor<float, 1>(10))));
  CHECK(shape_of(fanout::broadcast(std::vector<int>(3))) != shape_of(fanout::broadcast(std::vector<int>(4))));
  CHECK(shape_of(fanout::broadcast(std::tuple(table, 1))) == shape_of(fanout::broadcast(std::tuple(table, 2))));
}

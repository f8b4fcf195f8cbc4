// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <sstream>
#include <string>

#include <fanout/array/print.hpp>

#include "memory/remote_memory.hpp"

using fanout::Tensor;

TEST_CASE("an array prints its extents and its elements, nested as its axes") {
  const auto x = fanout::tensor<double>({{1, 2.5, 3}, {4, 5, 6}});
  CHECK(to_string(x) == "[2, 3] {{1, 2.5, 3}, {4, 5, 6}}");
  CHECK(to_string(x.row(1)) == "[3] {4, 5, 6}");
  std::ostringstream out;
  out << x.view();
  CHECK(out.str() == to_string(x));
  CHECK(to_string(Tensor<float, 2>()) == "[0, 0] {}");
  CHECK(to_string(Tensor<float, 2>(2, 0)) == "[2, 0] {{}, {}}");
  CHECK(to_string(fanout::tensor<std::int8_t>({65, -1})) == "[2] {65, -1}");
  CHECK(to_string(fanout::tensor<bool>({true, false})) == "[2] {1, 0}");
  CHECK(to_string(fanout::tensor({std::complex<float>(1, 2)})) == "[1] {(1,2)}");
}

TEST_CASE("of a long axis the first elements are printed") {
  CHECK(to_string(Tensor<int, 1>(6)) == "[6] {0, 0, 0, 0, 0, 0}");
  CHECK(to_string(Tensor<int, 1>(7)) == "[7] {0, 0, 0, 0, 0, 0, ...}");
  CHECK(to_string(Tensor<int, 2>(100, 1)) == "[100, 1] {{0}, {0}, {0}, {0}, {0}, {0}, ...}");
}

TEST_CASE("an array in another memory is printed as one on the host") {
  const auto x = fanout::tensor<int>({{1, 2}, {3, 4}});
  CHECK(to_string(fanout::to(x, fanout_test::RemoteMemory::memory(0))) == to_string(x));
  const auto far = fanout::to(Tensor<int, 1>(7), fanout_test::RemoteMemory::memory(0));
  CHECK(to_string(far) == "[7] {0, 0, 0, 0, 0, 0, ...}");
}

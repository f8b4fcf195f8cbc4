// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <tuple>
#include <type_traits>

#include <fanout/array/to.hpp>

#include "device/remote_device.hpp"
#include "memory/remote_memory.hpp"

using fanout::Tensor;
using fanout::to;
using fanout::to_host;
using fanout_test::RemoteDevice;
using fanout_test::RemoteMemory;

template <class From, class Into>
concept CopiesInto = requires(const From& from, Into into) {
  fanout::copy(from, into);
};

TEST_CASE("to() keeps a tree's type and puts its arrays in the given memory") {
  const std::map<std::string, std::tuple<Tensor<int, 1>, int>> tree{{"a", {Tensor<int, 1>(3), 7}}};
  const auto there = to(tree, RemoteDevice(1));
  static_assert(std::is_same_v<decltype(there), const std::map<std::string, std::tuple<Tensor<int, 1>, int>>>);
  CHECK(std::get<0>(there.at("a")).space() == RemoteMemory::memory(1).space);
  CHECK(std::get<1>(there.at("a")) == 7);
  CHECK(std::get<0>(to_host(there).at("a")).space() == fanout::host_memory);
}

TEST_CASE("to() of a view returns a tensor and waits until the copy is complete") {
  Tensor<int, 2> x(4, 2);
  x(2, 1) = 5;
  const int waited = RemoteMemory::counts().waited;
  const auto there = to(x.rows({2, 3}), RemoteMemory::memory(0));
  CHECK(RemoteMemory::counts().waited == waited + 1);
  static_assert(std::is_same_v<decltype(there), const Tensor<int, 2>>);
  CHECK(there.extents() == fanout::Extents<2>{1, 2});
  CHECK(to_host(there.view())(0, 1) == 5);
}

TEST_CASE("copy writes into existing memory") {
  Tensor<int, 1> x(3), back(3);
  x[2] = 9;
  auto there = Tensor<int, 1>::uninitialized({3}, RemoteMemory::memory(0));
  fanout::copy(x, there);
  fanout::copy(there, back);
  CHECK(back[2] == 9);
  Tensor<int, 1> two(2);
  fanout::copy(x.rows({1, 3}), two);
  CHECK(two == fanout::tensor({0, 9}));
  fanout::copy(two, x.rows({0, 2}));
  CHECK(x == fanout::tensor({0, 9, 9}));
  static_assert(!CopiesInto<Tensor<int, 1>, const Tensor<int, 1>&>, "not into what is const");
  static_assert(!CopiesInto<Tensor<int, 1>, Tensor<long, 1>&>);
  Tensor<int, 1> other(2);
  CHECK_THROWS_AS((fanout::copy(x, other)), fanout::ShapeMismatch);
  Tensor<int, 2> wide(2, 3);
  CHECK_THROWS_AS((fanout::copy(Tensor<int, 2>(3, 2), wide)), fanout::ShapeMismatch);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <string>

#include <fanout/base/type_name.hpp>

namespace fanout_test {

struct Plain {};
template <class T>
struct Box {
  struct Inside {};
};

}  // namespace fanout_test

TEST_CASE("type_name spells a type with its namespaces and arguments") {
  using fanout::detail::type_name;
  CHECK(type_name<int>() == "int");
  CHECK(type_name<double>() == "double");
  CHECK(type_name<fanout_test::Plain>() == "fanout_test::Plain");
  CHECK(type_name<fanout_test::Box<fanout_test::Plain>>() == "fanout_test::Box<fanout_test::Plain>");
  CHECK(type_name<fanout_test::Box<int>::Inside>() == "fanout_test::Box<int>::Inside");
  const std::string array = type_name<int[3]>();  // "int [3]" or "int[3]"
  CHECK(array.front() == 'i');
  CHECK(array.back() == ']');
}

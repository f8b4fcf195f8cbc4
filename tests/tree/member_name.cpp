// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fanout/tree/member_name.hpp>

#include "support/struct_of.hpp"

using fanout_test::StructOf;

// Not static_asserts: nvcc tells other names to those than to the program.

namespace {

template <class X, std::size_t... I>
std::vector<std::string> names_of(std::index_sequence<I...>) {
  return {std::string(fanout::detail::member_name<X, I>())...};
}
template <class X>
std::vector<std::string> names_of() {
  return names_of<X>(std::make_index_sequence<fanout::detail::member_count<X>>());
}

using Names = std::vector<std::string>;

template <std::size_t... N>
bool names_of_all_sizes(std::index_sequence<N...>) {
  Names expected;
  return ((expected.push_back("m" + std::to_string(N + 1)), names_of<StructOf<int, N + 1>>() == expected) && ...);
}

struct Unmade {
  Unmade(int);
};
struct Members {
  std::unique_ptr<int> only_moved;
  const std::string CONSTANT;
  StructOf<std::vector<int>, 2> inner;
  Unmade must_be_initialised;
  int x1, _, __under__score;
};
template <class T>
struct Template {
  T value;
};
struct WithReference {
  int number;
  const int& reference;
};

}  // namespace

namespace outer::inner {
struct InNamespace {
  int member;
};
}  // namespace outer::inner

TEST_CASE("members are named, in structs of 1 to 32") {
  CHECK(names_of<StructOf<int, 0>>() == Names{});
  CHECK(names_of_all_sizes(std::make_index_sequence<32>()));
}

TEST_CASE("members of any type are named, wherever the struct stands") {
  struct Local {
    int first;
    std::string second;
  };
  CHECK(names_of<Members>() ==
        Names{"only_moved", "CONSTANT", "inner", "must_be_initialised", "x1", "_", "__under__score"});
  CHECK(names_of<Template<Template<std::pair<int, char>>>>() == Names{"value"});
  CHECK(names_of<outer::inner::InNamespace>() == Names{"member"});
  CHECK(names_of<Local>() == Names{"first", "second"});
}

TEST_CASE("in a struct with references in it members have no name") {
  CHECK(names_of<WithReference>() == Names{"", ""});
}

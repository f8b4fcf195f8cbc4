// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/rebind.hpp>

namespace fanout_test { namespace {

template <class T, std::size_t N>
struct Other {};

}}  // namespace fanout_test

namespace {

using fanout::detail::rebind_element_t;
using fanout::detail::rebind_map_t;
using fanout::detail::rebind_tuple_t;

template <class T>
struct OwnAllocator : std::allocator<T> {
  using value_type = T;
};
struct OwnHash : std::hash<int> {};
struct OwnEqual : std::equal_to<int> {};

static_assert(std::is_same_v<rebind_tuple_t<std::tuple<int, float>, char, bool>, std::tuple<char, bool>>);
static_assert(std::is_same_v<rebind_tuple_t<std::tuple<>>, std::tuple<>>);
static_assert(std::is_same_v<rebind_tuple_t<std::tuple<int>, const int&>, std::tuple<const int&>>);
static_assert(std::is_same_v<rebind_tuple_t<std::pair<int, float>, char, bool>, std::pair<char, bool>>);
static_assert(std::is_same_v<rebind_tuple_t<std::array<int, 3>, bool, bool, bool>, std::array<bool, 3>>);
static_assert(std::is_same_v<rebind_tuple_t<std::array<int, 1>, bool>, std::array<bool, 1>>);
static_assert(std::is_same_v<rebind_tuple_t<std::array<int, 0>>, std::array<int, 0>>);

static_assert(std::is_same_v<rebind_tuple_t<std::variant<int, bool>, char, char>, std::variant<char, char>>);

static_assert(std::is_same_v<rebind_element_t<std::vector<int>, std::string>, std::vector<std::string>>);
static_assert(std::is_same_v<rebind_element_t<std::vector<int, OwnAllocator<int>>, char>, std::vector<char>>,
              "the allocator is the default one");
static_assert(std::is_same_v<rebind_element_t<std::deque<int>, bool>, std::deque<bool>>);
static_assert(std::is_same_v<rebind_element_t<std::optional<int>, bool>, std::optional<bool>>);

static_assert(std::is_same_v<rebind_map_t<std::map<std::string, int>, bool>, std::map<std::string, bool>>);
static_assert(
    std::is_same_v<rebind_map_t<std::map<int, int, std::greater<>>, bool>, std::map<int, bool, std::greater<>>>,
    "a map keeps its order");
static_assert(std::is_same_v<rebind_map_t<std::unordered_map<int, int>, bool>, std::unordered_map<int, bool>>);
static_assert(std::is_same_v<rebind_map_t<std::unordered_map<int, int, OwnHash, OwnEqual>, bool>,
                             std::unordered_map<int, bool, OwnHash, OwnEqual>>,
              "a map keeps its hash and what it takes for equal");
using PairAllocator = OwnAllocator<std::pair<const int, int>>;
static_assert(
    std::is_same_v<rebind_map_t<std::map<int, int, std::less<int>, PairAllocator>, bool>, std::map<int, bool>>);

template <template <class, std::size_t> class Array>
struct State {
  Array<int, 1> x;
};
template <class T, template <class, std::size_t> class Array>
struct StateOf {
  Array<T, 1> x;
};
static_assert(
    std::is_same_v<fanout::detail::rebind_arrays_t<State<std::array>, fanout_test::Other>, State<fanout_test::Other>>);
static_assert(std::is_same_v<fanout::detail::rebind_arrays_t<StateOf<int, std::array>, fanout_test::Other>,
                             StateOf<int, fanout_test::Other>>);

}  // namespace

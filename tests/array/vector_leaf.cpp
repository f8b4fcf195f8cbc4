// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>

namespace {

using fanout::ArrayLeaf;
using fanout::HasArrayLeaf;
using fanout::Output;
using fanout::Tensor;
using fanout::VectorNode;
using fanout::View;

struct Point {
  float x, y;
};
struct Named {
  std::string name;
  int number;
};
struct Node {
  int value;
  std::vector<Node> children;
};
struct Shown {
  int number;
  View<float, 1> values;
};
class Owner {
 public:
  explicit Owner(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};
enum class Hue { red };

template <class X>
constexpr bool is_array = ArrayLeaf<X> && !VectorNode<X> && HasArrayLeaf<X>;
template <class X>
constexpr bool is_vector_of_trees = VectorNode<X> && !ArrayLeaf<X>;

static_assert(is_array<std::vector<float>>);
static_assert(is_array<std::vector<Point>>);
static_assert(is_array<std::vector<std::array<float, 3>>>);
static_assert(is_array<std::vector<std::complex<double>>>);
static_assert(is_array<std::vector<Hue>>);
static_assert(is_array<std::vector<char>>);
static_assert(is_array<std::vector<std::string>>);
static_assert(is_array<std::vector<int*>>);
static_assert(is_array<std::span<float>> && is_array<std::span<const float>> && is_array<std::span<float, 3>>);
static_assert(is_array<std::span<const std::string>>);
static_assert(is_array<std::span<bool>> && is_array<std::span<const bool>>, "these can be shown");

static_assert(is_array<std::vector<std::vector<float>>> && is_array<std::vector<std::vector<std::vector<float>>>>);
static_assert(is_array<std::vector<std::vector<bool>>>);
static_assert(is_array<std::vector<std::pair<std::string, int>>> && is_array<std::span<std::pair<int, int>>>);
static_assert(is_array<std::vector<std::optional<std::string>>> && is_array<std::vector<std::map<int, float>>>);
static_assert(is_array<std::vector<std::variant<int, std::string>>>);
static_assert(is_array<std::vector<Named>> && is_array<std::vector<Node>>, "a struct may hold itself");
static_assert(is_array<std::vector<Owner>>, "nobody looks into a class that lists no fields");
static_assert(is_array<std::vector<std::unique_ptr<Tensor<float, 2>>>>, "nor through a pointer");

static_assert(is_vector_of_trees<std::vector<View<float, 2>>>, "trivially copyable, but an array itself");
static_assert(is_vector_of_trees<std::vector<Output<float, 2>>>);
static_assert(is_vector_of_trees<std::vector<std::span<float>>> && is_vector_of_trees<std::vector<std::span<Node>>>);
static_assert(is_vector_of_trees<std::vector<std::optional<View<float, 2>>>>);
static_assert(is_vector_of_trees<std::vector<std::array<View<float, 2>, 2>>>);
static_assert(is_vector_of_trees<std::vector<std::vector<View<float, 2>>>>, "at any depth");
static_assert(is_vector_of_trees<std::vector<std::map<int, Tensor<float, 1>>>>);
static_assert(is_vector_of_trees<std::vector<std::variant<int, View<float, 2>>>>);
static_assert(is_vector_of_trees<std::vector<Shown>>, "a struct with a view");
static_assert(is_vector_of_trees<std::vector<Tensor<float, 2>>> && HasArrayLeaf<std::vector<Tensor<float, 2>>>);
static_assert(is_vector_of_trees<std::deque<float>> && !HasArrayLeaf<std::deque<float>>, "not in one piece");
static_assert(is_vector_of_trees<std::vector<bool>> && !HasArrayLeaf<std::vector<bool>>);
static_assert(!ArrayLeaf<std::span<View<float, 2>>>);
static_assert(!ArrayLeaf<std::string> && !ArrayLeaf<std::array<float, 3>>);

static_assert(HasArrayLeaf<std::tuple<int, std::map<std::string, std::vector<float>>>>);
static_assert(HasArrayLeaf<std::map<std::string, Tensor<float, 2>>>);

static_assert(std::is_same_v<fanout::leaf_traits<std::vector<int>>::piece_type, std::span<const int>>);
static_assert(std::is_same_v<fanout::leaf_traits<std::span<const int>>::piece_type, std::span<const int>>);
static_assert(std::is_same_v<fanout::leaf_traits<std::span<int, 4>>::piece_type, std::span<const int>>);

}  // namespace

TEST_CASE("the elements of a vector or a span are its rows, and a piece shows them in place") {
  std::vector<std::string> texts{"a", "b", "c"};
  using of_vector = fanout::leaf_traits<std::vector<std::string>>;
  CHECK(of_vector::rows(texts) == 3);
  CHECK(of_vector::piece(texts, 1, 3).data() == &texts[1]);
  CHECK(of_vector::piece(texts, 1, 2).size() == 1);
  CHECK(of_vector::piece(texts, 3, 3).empty());

  float numbers[4] = {0, 1, 2, 3};
  using of_span = fanout::leaf_traits<std::span<float, 4>>;
  CHECK(of_span::rows(std::span(numbers)) == 4);
  CHECK(of_span::piece(std::span(numbers), 2, 3).data() == numbers + 2);

  const std::vector<int> none;
  CHECK(fanout::leaf_traits<std::vector<int>>::rows(none) == 0);
  CHECK(fanout::leaf_traits<std::vector<int>>::piece(none, 0, 0).empty());
}

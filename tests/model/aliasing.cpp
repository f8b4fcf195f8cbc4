// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <any>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

using fanout::detail::AliasingFields;
using fanout::detail::Element;
using fanout::detail::FieldAt;
using fanout::detail::find_field_t;
using fanout::detail::LeafAt;

template <class X>
constexpr bool aliases = !std::is_void_v<find_field_t<AliasingFields, X>>;

// what leads to something that can be changed
static_assert(aliases<int*>);
static_assert(aliases<void*>);
static_assert(aliases<int* const>);
static_assert(aliases<const int**>);
static_assert(aliases<int&>);
static_assert(aliases<std::shared_ptr<int>>);
static_assert(aliases<std::weak_ptr<int>>);
static_assert(aliases<std::reference_wrapper<int>>);
static_assert(aliases<std::span<int>>);
static_assert(aliases<fanout::View<float, 2>>);

// what does not
static_assert(!aliases<int>);
static_assert(!aliases<const int*>);
static_assert(!aliases<const char*>);
static_assert(!aliases<int* const*>);
static_assert(!aliases<const int&>);
static_assert(!aliases<int (*)(int)>);
static_assert(!aliases<int (&)(int)>);
static_assert(!aliases<std::shared_ptr<const int>>);
static_assert(!aliases<std::weak_ptr<const int>>);
static_assert(!aliases<std::reference_wrapper<const int>>);
static_assert(!aliases<std::reference_wrapper<int(int)>>);
static_assert(!aliases<std::span<const int>>);
static_assert(!aliases<fanout::View<const float, 2>>);
static_assert(!aliases<fanout::Tensor<float, 2>>);
static_assert(!aliases<fanout::Shared<int>>);
static_assert(!aliases<std::string>);
static_assert(!aliases<std::vector<bool>>);
static_assert(!aliases<std::function<int(int*)>>);
static_assert(!aliases<std::any>);

// in what holds values
static_assert(aliases<std::vector<int*>>);
static_assert(aliases<std::array<int*, 2>>);
static_assert(aliases<std::optional<std::shared_ptr<int>>>);
static_assert(aliases<std::map<int, std::tuple<int, int*>>>);
static_assert(aliases<std::variant<int, int*>>);
static_assert(aliases<std::tuple<int&>>);
static_assert(aliases<fanout::PerReplica<int*>>);
static_assert(aliases<decltype(fanout::dict(fanout::operator""_k<"a">() = static_cast<int*>(nullptr)))>);
static_assert(!aliases<std::tuple<const int&, std::vector<const int*>>>);

struct Clean {
  std::vector<std::string> names;
  const int* constant;
  std::function<void()> function;
  std::any any;
  fanout::Tensor<float, 1> weights;
};
static_assert(!aliases<Clean>);

struct Inner {
  int number;
  std::optional<int*> pointer;
};
struct Outer {
  Clean clean;
  std::tuple<int, std::vector<Inner>> inner;
};
using fanout::detail::EachValue;
using Found = FieldAt<int*, LeafAt<decltype(fanout::operator""_k<"inner">()), Element<1>, EachValue,
                                   decltype(fanout::operator""_k<"pointer">()), EachValue>>;
static_assert(std::is_same_v<find_field_t<AliasingFields, Outer>, Found>, "with its place");

struct Refers {
  int number;
  int& other;
};
static_assert(aliases<Refers>);
struct Reads {
  int number;
  const int& other;
};
static_assert(!aliases<Reads>);

struct Base {
  int* pointer;
};
struct WithBase : Base {
  int number;
};
static_assert(std::is_same_v<find_field_t<AliasingFields, WithBase>, FieldAt<WithBase, LeafAt<>>>, "somewhere in it");
struct WithArray {
  int* pointers[3];
};
static_assert(aliases<WithArray>);

/// Cannot be taken apart, which is not tried.
struct Packed {
  unsigned low : 4;
  unsigned high : 4;
  union {
    int number;
    float real;
  };
};
static_assert(!aliases<Packed>);

/// Can be made from what nobody knows here.
class Unknown;
struct Handle {
  Handle(const Unknown& unknown);  // NOLINT(google-explicit-constructor)
  Handle(Unknown* unknown);        // NOLINT(google-explicit-constructor)
};
struct HoldsHandle {
  std::optional<Handle> handle;
  std::vector<Handle> handles;
};
static_assert(!aliases<HoldsHandle>);

/// Holds itself.
struct Tree {
  std::vector<Tree> children;
  int value;
};
static_assert(!aliases<Tree>);

/// A class that shows nothing copies itself as it says.
class Private {
  int* pointer_ = nullptr;
};
static_assert(!aliases<Private>);
class Listed {
  int* pointer_ = nullptr;
  [[maybe_unused]] friend constexpr auto fields(const Listed*) {
    using namespace fanout::literals;
    return fanout::dict("pointer"_k = &Listed::pointer_);
  }
};
static_assert(aliases<Listed>);

}  // namespace

TEST_CASE("a const forward shares the original, with whatever it points to") {
  struct Points {
    int* calls;
    int forward(std::span<const int> x) const { return x[0] + *calls; }
  };
  int calls = 3;
  const fanout::ParallelModel model{Points{&calls}, fanout::host_devices(2)};
  CHECK(model(std::vector{1, 2})[1] == 5);
}

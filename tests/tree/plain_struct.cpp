// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <any>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/tree/plain_struct.hpp>

#include "support/struct_of.hpp"

namespace {

using fanout::detail::member_count;
using fanout::detail::PlainStruct;
using fanout_test::StructOf;

template <std::size_t... N>
constexpr bool counts_members_up_to(std::index_sequence<N...>) {
  return ((PlainStruct<StructOf<int, N>> && member_count<StructOf<int, N>> == N) && ...) &&
         ((member_count<StructOf<std::string, N>> == N) && ...) &&
         ((member_count<StructOf<std::unique_ptr<int>, N>> == N) && ...) &&
         ((member_count<StructOf<StructOf<int, 3>, N>> == N) && ...);
}
static_assert(counts_members_up_to(std::make_index_sequence<33>()), "0 to 32 members");
static_assert(!PlainStruct<StructOf<int, 33>>);
static_assert(!PlainStruct<StructOf<std::string, 34>>);

/// M between a member before it and two behind it.
template <class M>
struct Around {
  int before;
  M member;
  std::string behind;
  M last;
};
/// Whether a member of type M counts as one, wherever it stands.
template <class M>
constexpr bool counts_as_one = PlainStruct<Around<M>>&& member_count<Around<M>> == 4;

struct Corner {
  int x, y;
};
struct Line {
  Corner from, to;
  std::vector<int> numbers;
};
struct NeedsValue {
  NeedsValue(int);
};
struct ExplicitDefault {
  explicit ExplicitDefault();
};
struct Immovable {
  Immovable() = default;
  Immovable(Immovable&&) = delete;
};
struct FromAnything {
  template <class X>
  FromAnything(X&&);
};
enum class Shade { red };

static_assert(counts_as_one<int>);
static_assert(counts_as_one<bool>);
static_assert(counts_as_one<const double>);
static_assert(counts_as_one<Shade>);
static_assert(counts_as_one<int*>);
static_assert(counts_as_one<void (*)()>);
static_assert(counts_as_one<int Corner::*>);
static_assert(counts_as_one<std::nullptr_t>);
static_assert(counts_as_one<Corner>, "braces may be left out around the members of a member, but are not");
static_assert(counts_as_one<Line>);
static_assert(counts_as_one<const Corner>);
static_assert(counts_as_one<StructOf<int, 0>>);
static_assert(counts_as_one<std::array<int, 3>>);
static_assert(counts_as_one<std::array<Corner, 2>>);
static_assert(counts_as_one<int[1]>, "an array of one");
static_assert(counts_as_one<NeedsValue>);
static_assert(counts_as_one<ExplicitDefault>);
static_assert(counts_as_one<Immovable>);
static_assert(counts_as_one<FromAnything>);
static_assert(counts_as_one<std::unique_ptr<int>>);
static_assert(counts_as_one<std::atomic<int>>);
static_assert(counts_as_one<std::string>);
static_assert(counts_as_one<std::string_view>);
static_assert(counts_as_one<std::vector<int>>);
static_assert(counts_as_one<std::vector<Corner>>);
static_assert(counts_as_one<std::span<const int>>);
static_assert(counts_as_one<std::map<std::string, Corner>>);
static_assert(counts_as_one<std::optional<int>>);
static_assert(counts_as_one<std::optional<std::vector<int>>>);
static_assert(counts_as_one<std::optional<std::optional<Corner>>>);
static_assert(counts_as_one<std::variant<int, std::string>>);
static_assert(counts_as_one<std::any>);
static_assert(counts_as_one<std::function<void()>>);
static_assert(counts_as_one<std::complex<float>>);
static_assert(counts_as_one<std::pair<int, Corner>>);
static_assert(counts_as_one<std::tuple<>>);
static_assert(counts_as_one<std::tuple<int, std::string>>);
static_assert(counts_as_one<const int&>);
static_assert(counts_as_one<int&&>);
static_assert(counts_as_one<int&>);
static_assert(counts_as_one<Line&>);
static_assert(counts_as_one<const std::vector<int>&>);

struct WithDefaults {
  int a = 1;
  std::vector<int> b{1, 2};
};
static_assert(PlainStruct<WithDefaults> && member_count<WithDefaults> == 2);

static_assert(!PlainStruct<Around<int[3]>>);
static_assert(!PlainStruct<Around<Corner[2]>>);
static_assert(!PlainStruct<Around<int[2][2]>>);
static_assert(!PlainStruct<Around<char[100]>>, "more elements than members are counted");
struct ArrayAlone {
  float values[3];
};
static_assert(!PlainStruct<ArrayAlone>);
struct ArrayBeforeWhatMustBeInitialised {
  int values[2];
  NeedsValue last;
};
static_assert(!PlainStruct<ArrayBeforeWhatMustBeInitialised>);

struct WithBase : Corner {
  int z;
};
struct DerivedFromEmpty : StructOf<int, 0> {
  int z;
};
struct OnlyDerived : Corner {};
static_assert(!PlainStruct<WithBase>);
static_assert(!PlainStruct<DerivedFromEmpty>);
static_assert(!PlainStruct<OnlyDerived>);
struct HoldsDerived {
  WithBase derived;
  int last;
};
static_assert(PlainStruct<HoldsDerived> && member_count<HoldsDerived> == 2, "the base class of a member is none");

class ClosedStruct {
  [[maybe_unused]] int x;
};
struct Constructed {
  Constructed(int);
};
struct Virtual {
  virtual ~Virtual() = default;
  virtual void f() {}
};
union Union {
  int a;
  float b;
};
static_assert(!PlainStruct<ClosedStruct>);
static_assert(!PlainStruct<Constructed>);
static_assert(!PlainStruct<Virtual>);
static_assert(!PlainStruct<Union>);
static_assert(!PlainStruct<int>);
static_assert(!PlainStruct<int[2]>);
static_assert(!PlainStruct<std::string>);
static_assert(!PlainStruct<Corner&>);

}  // namespace

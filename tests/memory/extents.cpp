// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <fanout/memory/extents.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/node.hpp>

#include "support/message_of.hpp"

using fanout::Extents;
using fanout::ShapeMismatch;
using fanout::detail::checked_extents;
using fanout_test::message_of;
using fanout_test::says;

namespace {

static_assert(Extents<2>{{30, 5}}.size() == 150);
static_assert(Extents<2>{{30, 5}}.row_size() == 5);
static_assert(Extents<1>{{30}}.row_size() == 1);
static_assert(Extents<3>{{2, 3, 4}}.row_size() == 12);
static_assert(Extents<3>{{0, 3, 4}}.size() == 0);
static_assert(Extents<3>{{0, 3, 4}}.row_size() == 12);
static_assert(Extents<3>{{2, 0, 4}}.size() == 0);
static_assert(Extents<2>{}.size() == 0);
static_assert(Extents<3>{{2, 3, 4}}.with_rows(7) == Extents<3>{{7, 3, 4}});
static_assert(Extents<2>{{2, 3}}[1] == 3);
static_assert(Extents<2>{{2, 3}} == Extents<2>{{2, 3}});
static_assert(!(Extents<2>{{2, 3}} == Extents<2>{{1, 3}}) && !(Extents<2>{{2, 3}} == Extents<2>{{2, 1}}));
static_assert(Extents<2>{{2, 3}} != Extents<2>{{3, 2}});
static_assert(Extents<2>{{2, 3}} != Extents<2>{{2, 2}});
static_assert(std::is_trivially_copyable_v<Extents<4>>, "kernels take them");

static_assert(!fanout::TupleNode<Extents<2>> && !fanout::HasArrayLeaf<Extents<2>>, "a shape is no tree");

static_assert(checked_extents(4, 30, 5U) == Extents<2>{{30, 5}});
static_assert(checked_extents(4, short{3}, std::uint8_t{4}, std::int64_t{5}) == Extents<3>{{3, 4, 5}});
static_assert(checked_extents(4, 0) == Extents<1>{{0}});
static_assert(checked_extents(4, Extents<2>{{30, 5}}) == Extents<2>{{30, 5}});

constexpr std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
static_assert(checked_extents(1, most) == Extents<1>{{most}});
static_assert(checked_extents(8, most / 8, 1) == Extents<2>{{most / 8, 1}});

template <class... I>
std::string refusal(std::size_t element_size, I... extents) {
  return message_of<ShapeMismatch>([&] { checked_extents(element_size, extents...); });
}

}  // namespace

TEST_CASE("extents print as a list of numbers") {
  CHECK(to_string(Extents<1>{{15}}) == "[15]");
  CHECK(to_string(Extents<2>{{15, 5}}) == "[15, 5]");
  CHECK(to_string(Extents<4>{{1, 0, 2, 3}}) == "[1, 0, 2, 3]");
}

TEST_CASE("extents can be changed axis by axis") {
  Extents<2> extents{{2, 3}};
  extents[1] = 9;
  CHECK(extents == Extents<2>{{2, 9}});
}

TEST_CASE("a negative extent is refused and named") {
  CHECK(says(refusal(4, -1), "invalid extents", "expected", "not negative", "found -1"));
  CHECK(says(refusal(4, 3, std::int8_t{-7}), "invalid extents", "found -7"));
  CHECK(says(refusal(4, std::numeric_limits<std::int64_t>::min(), 0), "found -9223372036854775808"));
}

TEST_CASE("extents whose bytes cannot be counted are refused and named") {
  CHECK(says(refusal(1, most + 1), "invalid extents", "whose bytes fit into memory", "found [9223372036854775808]"));
  CHECK(says(refusal(8, most / 8 + 1), "invalid extents", "found ["));
  CHECK(says(refusal(1, std::uint64_t{1} << 32, std::uint64_t{1} << 32), "found [4294967296, 4294967296]"));
  CHECK(says(refusal(1, Extents<2>{{std::size_t{1} << 32, std::size_t{1} << 32}}), "found [4294967296, 4294967296]"));
}

TEST_CASE("an axis of no elements does not excuse the others") {
  CHECK(says(refusal(4, 0, most, most), "invalid extents", "found [0, "));
  CHECK(says(refusal(4, most, 0, most), "invalid extents"));
  CHECK_NOTHROW(checked_extents(4, 0, 1000, 0));
}

TEST_CASE("extents are bound to names, one for each axis") {
  const Extents<3> extents{{2, 3, 4}};
  const auto [planes, rows, columns] = extents;
  CHECK(planes == 2);
  CHECK(rows == 3);
  CHECK(columns == 4);
  Extents<2> written{{2, 3}};
  auto& [first, second] = written;
  second = 7;
  CHECK(first == 2);
  CHECK(written == Extents<2>{{2, 7}});
}

TEST_CASE("extents in braces are checked, whatever integers they are") {
  const int columns = 3;
  CHECK(checked_extents(4, {std::size_t{2}, columns}) == Extents<2>{{2, 3}});
  CHECK(says(message_of<ShapeMismatch>([] { checked_extents(4, {2, -7}); }), "invalid extents", "found -7"));
  CHECK(says(message_of<ShapeMismatch>([] { checked_extents(4, {1L << 40, 1L << 40}); }), "invalid extents"));
}

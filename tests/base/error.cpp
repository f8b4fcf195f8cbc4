// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include <fanout/base/error.hpp>

namespace {

template <class E>
constexpr bool is_kind_of_error =
    std::is_base_of_v<fanout::Error, E> && !std::is_same_v<fanout::Error, E> && std::is_nothrow_copy_constructible_v<E>;

static_assert(std::is_base_of_v<std::runtime_error, fanout::Error>);
static_assert(is_kind_of_error<fanout::InvalidDeviceId>);
static_assert(is_kind_of_error<fanout::InvalidArgument>);
static_assert(is_kind_of_error<fanout::DeviceMismatch>);
static_assert(is_kind_of_error<fanout::ShapeMismatch>);
static_assert(is_kind_of_error<fanout::StructureMismatch>);
static_assert(is_kind_of_error<fanout::OutOfMemory>);
static_assert(is_kind_of_error<fanout::DeviceError>);
static_assert(!std::is_base_of_v<fanout::InvalidArgument, fanout::ShapeMismatch>, "a caller can tell them apart");

}  // namespace

TEST_CASE("an explanation says what, where, expected, found and advice in this order") {
  CHECK(fanout::explain({.what = "extents disagree",
                         .where = "input[1]",
                         .expected = "30 rows",
                         .found = "29",
                         .advice = "mark it broadcast"}) ==
        "extents disagree at input[1]: expected 30 rows, found 29; mark it broadcast");
}

TEST_CASE("an explanation leaves out the parts that are empty") {
  CHECK(fanout::explain({.what = "broken"}) == "broken");
  CHECK(fanout::explain({.what = "broken", .where = "here"}) == "broken at here");
  CHECK(fanout::explain({.what = "broken", .expected = "one"}) == "broken: expected one");
  CHECK(fanout::explain({.what = "broken", .found = "two"}) == "broken: found two");
  CHECK(fanout::explain({.what = "broken", .expected = "one", .found = "two"}) == "broken: expected one, found two");
  CHECK(fanout::explain({.what = "broken", .advice = "mend it"}) == "broken; mend it");
  CHECK(fanout::explain({.what = "broken", .where = "here", .found = "two", .advice = "mend it"}) ==
        "broken at here: found two; mend it");
}

TEST_CASE("an error is caught as itself, as fanout's and as the standard library's, and keeps its text") {
  const auto fail = [] { throw fanout::DeviceMismatch("cuda:1"); };
  CHECK_THROWS_WITH_AS(fail(), "cuda:1", fanout::DeviceMismatch);
  CHECK_THROWS_WITH_AS(fail(), "cuda:1", fanout::Error);
  CHECK_THROWS_WITH_AS(fail(), "cuda:1", std::runtime_error);
}

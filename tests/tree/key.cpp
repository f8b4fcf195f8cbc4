// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/tree/key.hpp>

using namespace fanout::literals;

namespace {

static_assert(std::is_same_v<decltype("ab"_k), fanout::Key<'a', 'b'>>, "the letters are the type");
static_assert(std::is_same_v<decltype("noise"_k), decltype("noise"_k)>);
static_assert(!std::is_same_v<decltype("noise"_k), decltype("noises"_k)>);
static_assert(!std::is_same_v<decltype("ab"_k), decltype("ba"_k)>);
static_assert("image"_k.name() == "image");
static_assert("with blanks, and *:/%"_k.name() == "with blanks, and *:/%");
static_assert(std::is_empty_v<decltype("image"_k)>);

constexpr auto longest = "0123456789012345678901234567890123456789012345678901234567890123"_k;
static_assert(longest.name().size() == 64);

constexpr auto seven = "n"_k = 7;
static_assert(std::is_same_v<decltype(seven), const fanout::detail::Entry<fanout::Key<'n'>, int>>);
static_assert(seven.value == 7);

static_assert(std::is_same_v<decltype("t"_k = "text")::value_type, const char*>, "an array of letters decays");
static_assert(std::is_same_v<decltype("t"_k = std::declval<const std::string&>())::value_type, std::string>,
              "an entry owns its value");

}  // namespace

TEST_CASE("a key's text ends with a zero, as C wants it") { CHECK(std::string("noise"_k.text) == "noise"); }

TEST_CASE("an entry moves rvalues and copies lvalues") {
  auto pointer = std::make_unique<int>(5);
  const auto moved = "p"_k = std::move(pointer);
  CHECK(*moved.value == 5);

  std::string text = "a text that is long enough to stand on the heap";
  const auto copied = "t"_k = text;
  text[0] = 'b';
  CHECK(copied.value[0] == 'a');
}

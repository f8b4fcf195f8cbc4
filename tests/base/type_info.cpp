// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/type_info.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using fanout::detail::class_name;
using fanout::detail::same_type;
using fanout::detail::type_id;

namespace {

struct LocalClass : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

TEST_CASE("a type is the same as itself alone") {
  CHECK(same_type(type_id<int>(), type_id<int>()));
  CHECK_FALSE(same_type(type_id<int>(), type_id<const int>()));
  CHECK_FALSE(same_type(type_id<int>(), type_id<LocalClass>()));
}

TEST_CASE("an exception has the name of its own class, whatever it is caught as") {
  const LocalClass error("");
  const std::exception& caught = error;
  CHECK(class_name(caught).ends_with("LocalClass"));
  const std::out_of_range range("");
  CHECK(class_name(static_cast<const std::exception&>(range)) == "std::out_of_range");
}

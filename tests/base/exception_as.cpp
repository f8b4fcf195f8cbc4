// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/exception_as.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string_view>

using fanout::detail::exception_as;
using fanout::detail::has_caught_object;

namespace {

enum class Reason { none, full };
struct Base {
  int number;
};
struct Derived : Base {};

}  // namespace

TEST_CASE("an exception is found by its class, a base class or its number, and lives as long as its pointer") {
  const std::exception_ptr failure = std::make_exception_ptr(std::out_of_range("row 3"));
  REQUIRE(exception_as<std::out_of_range>(failure) != nullptr);
  CHECK(exception_as<std::out_of_range>(failure)->what() == std::string_view("row 3"));
  CHECK(exception_as<std::logic_error>(failure) == exception_as<const std::out_of_range>(failure));
  CHECK(exception_as<std::runtime_error>(failure) == nullptr);
  CHECK(exception_as<int>(failure) == nullptr);

  const std::exception_ptr three = std::make_exception_ptr(3);
  CHECK(*exception_as<int>(three) == 3);
  CHECK(exception_as<long>(three) == nullptr);
  const std::exception_ptr full = std::make_exception_ptr(Reason::full);
  CHECK(*exception_as<Reason>(full) == Reason::full);
  const std::exception_ptr derived = std::make_exception_ptr(Derived{{7}});
  CHECK(exception_as<Base>(derived)->number == 7);
  CHECK(exception_as<volatile Base>(derived)->number == 7);
}

TEST_CASE("pointers, and what is thrown as a pointer, are refused") {
  CHECK_FALSE(has_caught_object<const char*>);
  CHECK_FALSE(has_caught_object<char[3]>);
  CHECK_FALSE(has_caught_object<int Base::*>);
  CHECK_FALSE(has_caught_object<std::nullptr_t>);
  CHECK_FALSE(has_caught_object<void>);
  CHECK_FALSE(has_caught_object<int&>);
  CHECK_FALSE(has_caught_object<void()>);
}

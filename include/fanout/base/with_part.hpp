// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// The value that an option has if nobody sets it.
template <class T>
struct Unset {
  T value;
};
template <class T>
Unset(T) -> Unset<T>;

/// The value of an option, and the part of the library that the option needs. Only the constructor that sets the value
/// names `Part::table`, with functions of that part. So a program that never sets the option has no code of the part.
template <class T, class Part>
class WithPart {
 public:
  constexpr WithPart() = default;
  constexpr WithPart(Unset<T> unset)  // NOLINT(google-explicit-constructor): = Unset{value}
      : value_(std::move(unset.value)) {}

  template <class U>
    requires(!std::same_as<std::remove_cvref_t<U>, WithPart> && !std::same_as<std::remove_cvref_t<U>, Unset<T>> &&
             std::convertible_to<U, T>)
  constexpr WithPart(U&& value)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .measure = true
      : value_(std::forward<U>(value)), part_(&Part::table) {}

  constexpr operator const T&() const noexcept { return value_; }  // NOLINT(google-explicit-constructor)
  constexpr const T& value() const noexcept { return value_; }

  /// Null if nobody has set the value.
  constexpr const Part* part() const noexcept { return part_; }

 private:
  T value_{};
  const Part* part_ = nullptr;
};

}}}  // namespace fanout::v0::detail

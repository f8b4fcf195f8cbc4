// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/exception_as.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// Thrown in the place of a batch if the dataset or the collate function has thrown. Holds that exception, of any type.
/// The next batch can be taken after it.
class [[gnu::visibility("default")]] LoadError : public Error {
 public:
  /// Which batch could not be loaded.
  struct Place {
    std::uint64_t epoch = 0;
    std::size_t batch = 0;                   ///< its number in the epoch, from 0
    RowRange rows = {};                      ///< its rows in the epoch's order, counted as LoaderPosition::row
    std::optional<std::size_t> sample = {};  ///< the sample whose access threw; none if another function threw
  };

  /// `original` must not be null.
  LoadError(const Place& place, std::exception_ptr original)
      : Error(text(place, original)), place_(place), original_(std::move(original)) {}

  const Place& place() const noexcept { return place_; }

  /// The original exception, if it is an E, a class or a number, or null. Lives as long as this error.
  template <class E>
  const E* get_if() const noexcept {
    return detail::exception_as<E>(original_);
  }

  /// Throws the original exception.
  [[noreturn]] void rethrow() const { std::rethrow_exception(original_); }

 private:
  FANOUT_INLINE static std::string text(const Place& place, const std::exception_ptr& original);

  Place place_;
  std::exception_ptr original_;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/data/load_error.ipp>
#endif

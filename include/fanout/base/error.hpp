// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fanout/base/program_settings.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// The base class of every exception of the library. Its subclasses are the kinds that a caller may want to tell apart.
class [[gnu::visibility("default")]] Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device that does not exist, a device that is named twice, or no device where at least one is needed.
class [[gnu::visibility("default")]] InvalidDeviceId : public Error {
 public:
  using Error::Error;
};

/// An option, an argument or an environment variable with an invalid value.
class [[gnu::visibility("default")]] InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Data is in one memory, but another memory is needed. All host devices share one memory.
class [[gnu::visibility("default")]] DeviceMismatch : public Error {
 public:
  using Error::Error;
};

/// Extents that do not fit together, or that are invalid.
class [[gnu::visibility("default")]] ShapeMismatch : public Error {
 public:
  using Error::Error;
};

/// Replicas returned different trees: other keys, other lengths, or a value in one and none in another.
class [[gnu::visibility("default")]] StructureMismatch : public Error {
 public:
  using Error::Error;
};

/// Memory could not be allocated.
class [[gnu::visibility("default")]] OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A device, or its driver, failed. The model and its arguments are not to blame.
class [[gnu::visibility("default")]] DeviceError : public Error {
 public:
  using Error::Error;
};

/// A collective waits for a rank that has left: the `forward` of that rank has thrown or returned.
class [[gnu::visibility("default")]] CommunicatorAbandoned : public Error {
 public:
  CommunicatorAbandoned(const std::string& text, std::size_t rank) : Error(text), rank_(rank) {}

  /// The rank that left. If several did, one that left by an exception of its own.
  std::size_t rank() const noexcept { return rank_; }

 private:
  std::size_t rank_;
};

namespace detail {

/// The parts of an error message: what was wrong and where, what was expected and found, and what to do. Views, so that
/// a part that is constant costs no code; parts that are composed live until the expression ends that holds them.
struct Explanation {
  std::string_view what;
  std::string_view where = {};
  std::string_view expected = {};
  std::string_view found = {};
  std::string_view advice = {};
};

}  // namespace detail

/// Returns `what at where: expected ..., found ...; advice`. Empty parts are left out.
[[gnu::cold]] FANOUT_INLINE std::string explain(const detail::Explanation& parts);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/base/error.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

#include <fanout/base/annotate.hpp>

namespace fanout { inline namespace v0 {

/// What every exception of the library is. Below it stand the kinds that a caller may want to tell apart.
class FANOUT_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device that is not there, is named twice, or none where at least one is needed.
class FANOUT_EXPORT InvalidDeviceId : public Error {
 public:
  using Error::Error;
};

/// An option, an argument or an environment variable that has no meaning.
class FANOUT_EXPORT InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Data in one memory used where another is needed. All host devices share one memory.
class FANOUT_EXPORT DeviceMismatch : public Error {
 public:
  using Error::Error;
};

/// Extents that disagree or cannot be.
class FANOUT_EXPORT ShapeMismatch : public Error {
 public:
  using Error::Error;
};

/// Replicas that returned different trees: other keys, other lengths, a value here and none there.
class FANOUT_EXPORT StructureMismatch : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be had.
class FANOUT_EXPORT OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A rank that is waited for in a collective has left: its forward has thrown or returned.
class FANOUT_EXPORT CommunicatorAbandoned : public Error {
 public:
  CommunicatorAbandoned(const std::string& text, std::size_t rank) : Error(text), rank_(rank) {}

  /// The rank that left; of several, the one that did so first by an exception of its own.
  std::size_t rank() const noexcept { return rank_; }

 private:
  std::size_t rank_;
};

/// The parts of a message. Every error says what was wrong and where, what was expected and found, and what to do.
struct Explanation {
  std::string what;
  std::string where = {};
  std::string expected = {};
  std::string found = {};
  std::string advice = {};
};

/// `what at where: expected ..., found ...; advice`; parts that are empty are left out.
inline std::string explain(const Explanation& parts) {
  std::string text = parts.what;
  if (!parts.where.empty()) text += " at " + parts.where;
  if (!parts.expected.empty()) text += ": expected " + parts.expected;
  if (!parts.found.empty()) text += (parts.expected.empty() ? ": found " : ", found ") + parts.found;
  if (!parts.advice.empty()) text += "; " + parts.advice;
  return text;
}

}}  // namespace fanout::v0

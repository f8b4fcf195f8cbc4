// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>

#include <mpi.h>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

/// A function of MPI has returned an error.
class [[gnu::visibility("default")]] MpiError : public Error {
 public:
  /// `call` is the name of the function: "MPI_Comm_dup".
  MpiError(const char* call, int code) : Error(std::string(call) + " failed: " + text_of(code)), code_(code) {}

  /// The code that the function returned. MPI_Error_class() gives its class.
  int code() const noexcept { return code_; }

 private:
  static std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS || length <= 0) return "error " + std::to_string(code);
    return {text, static_cast<std::size_t>(length)};
  }

  int code_;
};

}}}  // namespace fanout::v0::mpi

namespace fanout { inline namespace v0 { namespace detail {

/// Throws MpiError unless the status is MPI_SUCCESS.
inline void check_mpi(int status, const char* call) {
  if (status != MPI_SUCCESS) throw mpi::MpiError(call, status);
}

}}}  // namespace fanout::v0::detail

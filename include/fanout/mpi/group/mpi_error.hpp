// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>

#include <mpi.h>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

/// A function of MPI has returned an error.
class [[gnu::visibility("default")]] MpiError : public Error {
 public:
  /// `call` is the name of the function: "MPI_Comm_dup".
  MpiError(const char* call, int code) : Error(std::string(call) + " failed: " + text_of(code)), code_(code) {}

  /// The code that the function returned. MPI_Error_class() gives its class.
  int code() const noexcept { return code_; }

 private:
  FANOUT_INLINE static std::string text_of(int code);

  int code_;
};

}}}  // namespace fanout::v0::mpi

namespace fanout { inline namespace v0 { namespace detail {

/// Throws MpiError unless the status is MPI_SUCCESS.
inline void check_mpi(int status, const char* call) {
  if (status != MPI_SUCCESS) throw mpi::MpiError(call, status);
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/mpi_error.ipp>
#endif

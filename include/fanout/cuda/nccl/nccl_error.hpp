// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <nccl.h>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// A call of NCCL failed, or its work on a GPU did.
class [[gnu::visibility("default")]] NcclError : public Error {
 public:
  NcclError(const std::string& text, ncclResult_t code) : Error(text), code_(code) {}

  /// What NCCL returned.
  ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

namespace detail {

inline void check_nccl(ncclResult_t result, const char* call, ncclComm_t communicator = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const char* const last = ::ncclGetLastError(communicator);
  throw NcclError(explain({.what = std::string("NCCL error: ") + ::ncclGetErrorString(result),
                           .where = call,
                           .found = last == nullptr ? "" : last,
                           .advice = "set NCCL_DEBUG=WARN in the environment for details"}),
                  result);
}

}  // namespace detail

}}}  // namespace fanout::v0::cuda

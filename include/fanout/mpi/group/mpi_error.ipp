// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/mpi_error.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace mpi {

std::string MpiError::text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS || length <= 0) return "error " + std::to_string(code);
  return {text, static_cast<std::size_t>(length)};
}

}}}  // namespace fanout::v0::mpi

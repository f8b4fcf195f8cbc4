// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/mpi_numbers.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

MpiNumbers::MpiNumbers(const backend::NumberFold& fold) noexcept {
  using Kind = backend::ElementType::Kind;
  using backend::Reduction;
  const bool adds = fold.by == Reduction::sum;
  if (!adds && fold.by != Reduction::min && fold.by != Reduction::max) return;
  operation_ = adds ? MPI_SUM : fold.by == Reduction::min ? MPI_MIN : MPI_MAX;
  if (fold.kind == Kind::floating) {
    // MPI_MIN and MPI_MAX lose some NaNs, in an order that the MPI chooses.
    if (adds && fold.size == sizeof(float)) set<float>(MPI_FLOAT, fold.by);
    if (adds && fold.size == sizeof(double)) set<double>(MPI_DOUBLE, fold.by);
  } else if (adds && fold.kind != Kind::other) {
    // Signed sums are added as unsigned ones, which wrap.
    if (fold.size == 1) set<std::uint8_t>(MPI_UINT8_T, fold.by);
    if (fold.size == 2) set<std::uint16_t>(MPI_UINT16_T, fold.by);
    if (fold.size == 4) set<std::uint32_t>(MPI_UINT32_T, fold.by);
    if (fold.size == 8) set<std::uint64_t>(MPI_UINT64_T, fold.by);
  } else if (fold.kind == Kind::signed_integer) {  // MPICH 4.0 compares unsigned integers as signed ones
    if (fold.size == 1) set<std::int8_t>(MPI_INT8_T, fold.by);
    if (fold.size == 2) set<std::int16_t>(MPI_INT16_T, fold.by);
    if (fold.size == 4) set<std::int32_t>(MPI_INT32_T, fold.by);
    if (fold.size == 8) set<std::int64_t>(MPI_INT64_T, fold.by);
  }
}

}}}  // namespace fanout::v0::detail

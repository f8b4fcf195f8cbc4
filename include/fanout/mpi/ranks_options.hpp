// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>

#include <fanout/base/duration.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace mpi {

/// How the ranks of a model combine numbers: those of psum, pmean, pmax and pmin, and of combined fields.
enum class RankReduction : unsigned char {
  /// By fanout, in the order of the ranks. The result is bitwise the same in every run and with every MPI.
  in_rank_order,
  /// By MPI_Allreduce, in an order that the MPI chooses: sums and means of floats and doubles, sums of integers and of
  /// complex numbers, and the greatest and least signed integers. Other values are combined in rank order. So are the
  /// greatest and least floating-point numbers, since MPI does not define these for NaN, and unsigned integers, which
  /// MPICH 4.0 compares as signed ones.
  by_library,
};
/// For RanksOptions: numbers are combined by fanout, in the order of the ranks.
inline constexpr RankReduction in_rank_order = RankReduction::in_rank_order;
/// For RanksOptions: numbers are combined by MPI_Allreduce.
inline constexpr RankReduction by_library = RankReduction::by_library;

/// The options of Ranks, the same on all ranks.
struct RanksOptions {
  RankReduction reduce = in_rank_order;  ///< how numbers are combined
  bool gpu_aware = false;                ///< true if MPI_Allreduce takes pointers to device memory; for `by_library`
  /// If a rank dies, the others throw RankLost and may go on with Ranks::shrink(), instead of the end of the job. Needs
  /// an MPI with ULFM that was started with it: Open MPI 5, `mpirun --with-ft ulfm`.
  bool survive = false;
  /// How long `scatter` and `gather` wait for other ranks. Then they throw Timeout on all ranks, and the Ranks refuse
  /// further calls. All ranks set a deadline, or none. Deadlines may differ: the earliest one counts. For calls of
  /// models, see Options::deadline.
  Duration deadline = Duration::forever();
};

}}}  // namespace fanout::v0::mpi

namespace fanout { inline namespace v0 { namespace detail {

/// `mpi::Ranks with .reduce = by_library`, for errors.
FANOUT_INLINE std::string described(const mpi::RanksOptions& options);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/ranks_options.ipp>
#endif

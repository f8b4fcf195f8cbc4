// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/mpi/group/mpi_mail.hpp>
#include <fanout/mpi/reduction/collected_values.hpp>
#include <fanout/mpi/reduction/mpi_numbers.hpp>
#include <fanout/mpi/reduction/reduced_message.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Combines values of all ranks in place by MPI_Allreduce. The values are the same on all ranks but for their elements,
/// and their memories.
class LibraryReduction final : public TakenValues {
 public:
  struct Limits {
    std::size_t numbers = std::size_t{1} << 30;       ///< in one call: MPI 3 counts in ints
    std::size_t packed_bytes = std::size_t{1} << 20;  ///< larger values travel alone, without a copy
  };

  /// True if MPI combines such values.
  static bool takes(const backend::RankFold& fold) noexcept { return MpiNumbers(fold.numbers).known(); }

  /// Sends nothing yet, but copies values into messages. With `takes_devices`, MPI takes device memory; a rank that may
  /// not count must send from host memory. Borrows the values' elements.
  FANOUT_INLINE LibraryReduction(const MpiGroup& group, std::vector<backend::RankedValue> values, bool takes_devices,
                                 const Limits& limits);
  LibraryReduction(const MpiGroup& group, std::vector<backend::RankedValue> values, bool takes_devices)
      : LibraryReduction(group, std::move(values), takes_devices, Limits()) {}

  /// Throws MpiError.
  FANOUT_INLINE void run(bool counts) override;
  void finish() const override {
    for (const ReducedMessage& message : messages_) message.finish();
  }

 private:
  FANOUT_INLINE void add(const backend::RankedValue& value);

  const MpiGroup& group_;
  std::vector<backend::RankedValue> values_;
  Limits limits_;
  std::vector<ReducedMessage> messages_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/library_reduction.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <vector>

#include <mpi.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/mpi/reduction/mpi_numbers.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The values that travel in one message, which all have the same numbers and operation.
class ReducedMessage {
 public:
  ReducedMessage(const backend::RankedValue& first, bool takes_more) : numbers_(first.fold->numbers) {
    add(first);
    takes_more_ = takes_more;
  }

  bool takes(const backend::RankedValue& value) const noexcept {
    return takes_more_ && value.fold->numbers == numbers_;
  }
  void add(const backend::RankedValue& value) {
    values_.push_back(&value);
    bytes_ += bytes_of(value);
  }

  /// Prepares the elements for MPI: in place if there is one value, in memory that MPI takes. Else in a copy, which is
  /// in device memory if all are in the same one and MPI takes it.
  FANOUT_INLINE void prepare(bool takes_devices);

  /// Replaces the values by those that change no result, if this rank does not count for them. Only in host memory.
  FANOUT_INLINE void exclude();

  /// Waits for all ranks. MPI takes `largest` numbers in one call.
  FANOUT_INLINE void reduce(MPI_Comm over, std::size_t largest);

  /// Copies the results to where the values came from.
  FANOUT_INLINE void finish() const;

 private:
  static std::size_t bytes_of(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }

  /// Calls `f(value, data)`: `data` is where its elements are for MPI.
  template <class F>
  void for_each(const F& f) const {
    std::byte* data = data_;
    for (const backend::RankedValue* value : values_) {
      f(*value, data);
      data += bytes_of(*value);
    }
  }

  backend::NumberFold numbers_;
  bool takes_more_ = true;
  std::vector<const backend::RankedValue*> values_;
  std::size_t bytes_ = 0;
  backend::Memory memory_;     // that of `data_`
  std::byte* data_ = nullptr;  // all elements, one value after the other
  Storage copy_;               // owns them, unless they are in place
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/reduced_message.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <mpi.h>

#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
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
  void prepare(bool takes_devices) {
    MemorySpace space = values_[0]->space;
    for (const backend::RankedValue* value : values_) {
      if (!takes_devices || !(value->space == space)) space = host_memory;
    }
    memory_ = backend::memory_of(space);
    if (values_.size() == 1 && values_[0]->space == space) {
      data_ = static_cast<std::byte*>(values_[0]->data);
    } else {
      copy_ = Storage(memory_, bytes_);
      data_ = static_cast<std::byte*>(copy_.data());
      for_each([this](const backend::RankedValue& value, std::byte* packed) {
        backend::transfer(memory_, packed, value.space, value.data, bytes_of(value));
      });
    }
    if (!(space == host_memory)) backend::wait_for(memory_);  // MPI does not know the streams of devices
  }

  /// Replaces the values by those that change no result, if this rank does not count for them. Only in host memory.
  void exclude() {
    const MpiNumbers numbers(numbers_);
    for_each([&](const backend::RankedValue& value, std::byte* data) {
      if (!value.fold->counts_empty) numbers.fill(data, bytes_of(value) / numbers_.size);
    });
  }

  /// Waits for all ranks. MPI takes `largest` numbers in one call.
  void reduce(MPI_Comm over, std::size_t largest) {
    const MpiNumbers numbers(numbers_);
    const std::size_t count = bytes_ / numbers_.size;
    for (std::size_t begin = 0; begin < count; begin += largest) {
      check_mpi(
          MPI_Allreduce(MPI_IN_PLACE, data_ + begin * numbers_.size, static_cast<int>(std::min(largest, count - begin)),
                        numbers.type(), numbers.operation(), over),
          "MPI_Allreduce");
    }
  }

  /// Copies the results to where the values came from.
  void finish() const {
    if (copy_.data() == nullptr) return;
    for_each([this](const backend::RankedValue& value, const std::byte* packed) {
      backend::transfer(backend::memory_of(value.space), value.data, memory_.space, packed, bytes_of(value));
    });
  }

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

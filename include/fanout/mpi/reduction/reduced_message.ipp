// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/reduced_message.hpp>

#include <algorithm>

#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/group/mpi_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void ReducedMessage::prepare(bool takes_devices) {
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

void ReducedMessage::exclude() {
  const MpiNumbers numbers(numbers_);
  for_each([&](const backend::RankedValue& value, std::byte* data) {
    if (!value.fold->counts_empty) numbers.fill(data, bytes_of(value) / numbers_.size);
  });
}

void ReducedMessage::reduce(MPI_Comm over, std::size_t largest) {
  const MpiNumbers numbers(numbers_);
  const std::size_t count = bytes_ / numbers_.size;
  for (std::size_t begin = 0; begin < count; begin += largest) {
    check_mpi(
        MPI_Allreduce(MPI_IN_PLACE, data_ + begin * numbers_.size, static_cast<int>(std::min(largest, count - begin)),
                      numbers.type(), numbers.operation(), over),
        "MPI_Allreduce");
  }
}

void ReducedMessage::finish() const {
  if (copy_.data() == nullptr) return;
  for_each([this](const backend::RankedValue& value, const std::byte* packed) {
    backend::transfer(backend::memory_of(value.space), value.data, memory_.space, packed, bytes_of(value));
  });
}

}}}  // namespace fanout::v0::detail

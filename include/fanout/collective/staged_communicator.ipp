// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/staged_communicator.hpp>

#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void StagedCalls::finish() {
  for (const Array& array : staged_) {
    if (array.written)
      backend::transfer(backend::memory_of(array.space), array.original, host_memory, array.here.data(), array.bytes);
  }
}

void StagedCalls::stage(backend::Collective& call, std::size_t ranks) {
  const bool in_place = call.from == call.to && call.from_bytes(ranks) == call.to_bytes(ranks);
  const bool reads = call.reads(rank_) && !(call.from_space == host_memory);
  const bool writes = call.writes(rank_) && !(call.to_space == host_memory);
  if (reads || (in_place && writes)) {
    void* const original = const_cast<void*>(call.from);  // written only if the call also writes it
    Array& array = add(original, call.from_space, call.from_bytes(ranks), in_place && writes);
    if (reads) backend::transfer(backend::Memory{}, array.here.data(), array.space, original, array.bytes);
    call.from = array.here.data();
    if (in_place) call.to = array.here.data();
  }
  if (writes && !in_place) call.to = add(call.to, call.to_space, call.to_bytes(ranks), true).here.data();
  call.from_space = call.to_space = host_memory;
}

}}}  // namespace fanout::v0::detail

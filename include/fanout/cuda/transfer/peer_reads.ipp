// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/peer_reads.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void PeerReads::add(const void* data, std::size_t bytes, StreamRef stream) {
  const fanout::detail::ForkSafeLock adding(mutex_);
  if (size_ >= most_before_look_) forget_done();
  Read& read = take_spare(stream.device());
  try {
    stream.record(read.done);
  } catch (...) {
    push(spare_, read);
    throw;
  }
  read.begin = static_cast<const std::byte*>(data);
  read.bytes = bytes;
  push(reads_, read);
  ++size_;
  is_empty_.store(false, fanout::detail::MemoryOrder::release);
}

void PeerReads::await_in(StreamRef stream, const void* data, std::size_t bytes) {
  if (is_empty_.load(fanout::detail::MemoryOrder::acquire)) return;
  const fanout::detail::ForkSafeLock looking(mutex_);
  for (const Read* read = reads_; read != nullptr; read = read->next) {
    if (read->is_of(data, bytes) && !is_lost(*read)) stream.wait(read->done);
  }
}

bool PeerReads::has(const void* data, std::size_t bytes) noexcept {
  if (is_empty_.load(fanout::detail::MemoryOrder::acquire)) return false;
  const fanout::detail::ForkSafeLock looking(mutex_);
  for (const Read* read = reads_; read != nullptr; read = read->next) {
    if (read->is_of(data, bytes)) return true;
  }
  return false;
}

void PeerReads::forget_done() {
  for (Read** link = &reads_; *link != nullptr;) {
    Read& read = **link;
    if (!is_lost(read) && !read.done.is_done()) {
      link = &read.next;
      continue;
    }
    *link = read.next;
    push(spare_, read);
    --size_;
  }
  most_before_look_ = size_ < 8 ? 16 : 2 * size_;
  is_empty_.store(size_ == 0, fanout::detail::MemoryOrder::release);
}

PeerReads::Read& PeerReads::take_spare(int gpu) {
  for (Read** link = &spare_; *link != nullptr; link = &(*link)->next) {
    if ((*link)->done.device() == gpu || (*link)->done.device() < 0) return *std::exchange(*link, (*link)->next);
  }
  return *new Read;
}

PeerReads& peer_reads_of(GpuState& gpu) {
  PeerReads* reads = gpu.peer_reads().load(fanout::detail::MemoryOrder::acquire);
  if (reads == nullptr) {
    auto* made = new PeerReads;
    if (gpu.peer_reads().compare_exchange_strong(reads, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *reads;
}

}}}  // namespace fanout::v0::cuda::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/parcel.hpp>

#include <cstring>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/enqueue_copy.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

Parcel::Parcel(Parcels& home, StreamRef stream)
    : home_(home),
      stream_(stream),
      on_host_(static_cast<std::byte*>(allocate_page_locked(bytes, home.gpu_, home.node_))) {}

void* Parcel::add(std::size_t size) {
  if (size > small || bytes - used_ < size) return nullptr;
  send();  // what is sent later would overwrite it
  return claim(size);
}

void* Parcel::add(const void* from, std::size_t size) {
  if (size > small || bytes - used_ < size) return nullptr;
  if (filled_ != used_) {
    send();
    sent_ = used_;
  }
  std::memcpy(on_host_ + used_, from, size);
  void* const room = claim(size);
  filled_ = used_;
  return room;
}

void* Parcel::claim(std::size_t size) noexcept {
  void* const room = on_gpu_.load(fanout::detail::MemoryOrder::relaxed) + used_;
  used_ += (size + 255) / 256 * 256;
  holders_.fetch_add(1, fanout::detail::MemoryOrder::relaxed);
  return room;
}

void Parcel::send_filled() {
  enqueue_copy(stream_, on_gpu_.load(fanout::detail::MemoryOrder::relaxed) + sent_, on_host_ + sent_, filled_ - sent_,
               cudaMemcpyHostToDevice);
  sent_ = filled_;
}

void Parcel::want(void* to, const void* from, std::size_t size) noexcept {
  wanted_[wanted_count_++] = {to, offset_of(from), size};
}

void Parcel::fetch() {
  if (wanted_count_ == 0) return;
  std::size_t begin = bytes;
  std::size_t end = 0;
  for (std::size_t i = 0; i < wanted_count_; ++i) {
    const Wanted& each = wanted_[i];
    if (each.offset < begin) begin = each.offset;
    if (each.offset + each.size > end) end = each.offset + each.size;
  }
  enqueue_copy(stream_, on_host_ + begin, on_gpu_.load(fanout::detail::MemoryOrder::relaxed) + begin, end - begin,
               cudaMemcpyDeviceToHost);
}

void Parcel::deliver() noexcept {
  for (std::size_t i = 0; i < wanted_count_; ++i) {
    std::memcpy(wanted_[i].to, on_host_ + wanted_[i].offset, wanted_[i].size);
  }
}

void Parcel::release() noexcept {
  if (holders_.fetch_sub(1, fanout::detail::MemoryOrder::acq_rel) != 1) return;
  used_ = sent_ = filled_ = wanted_count_ = 0;
  home_.give(*this);
}

Parcel* Parcels::take(StreamRef stream) {
  const fanout::detail::ForkSafeLock taking(mutex_);
  try {
    Parcel* const parcel = free_ != nullptr ? std::exchange(free_, free_->next_) : make(stream);
    if (parcel == nullptr) return nullptr;
    if (parcel->on_gpu_.load(fanout::detail::MemoryOrder::relaxed) == nullptr) {
      parcel->next_ = std::exchange(free_, parcel);  // if this throws
      parcel->on_gpu_.store(static_cast<std::byte*>(allocate_in(stream, Parcel::bytes)),
                            fanout::detail::MemoryOrder::release);
      free_ = parcel->next_;
    }
    parcel->holders_.store(1, fanout::detail::MemoryOrder::relaxed);
    return parcel;
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

Parcel* Parcels::make(StreamRef stream) {
  for (fanout::detail::Atomic<Parcel*>& place : all_) {
    if (place.load(fanout::detail::MemoryOrder::relaxed) != nullptr) continue;
    auto* const made = new Parcel(*this, stream);
    place.store(made, fanout::detail::MemoryOrder::release);
    return made;
  }
  return nullptr;
}

Parcel* Parcels::find(const void* array) const noexcept {
  for (const fanout::detail::Atomic<Parcel*>& place : all_) {
    Parcel* const parcel = place.load(fanout::detail::MemoryOrder::acquire);
    if (parcel == nullptr || parcel->has(array)) return parcel;
  }
  return nullptr;
}

void Parcels::give(Parcel& parcel) noexcept {
  const fanout::detail::ForkSafeLock giving(mutex_);
  parcel.next_ = std::exchange(free_, &parcel);
}

void Parcels::trim() noexcept {
  if (!gpu_.usable()) return;
  const fanout::detail::ForkSafeLock trimming(mutex_);
  for (Parcel* parcel = free_; parcel != nullptr; parcel = parcel->next_) {
    std::byte* const data = parcel->on_gpu_.exchange(nullptr, fanout::detail::MemoryOrder::acq_rel);
    if (data != nullptr) release_in(parcel->stream_, data, Parcel::bytes);
  }
}

}}}  // namespace fanout::v0::cuda::detail

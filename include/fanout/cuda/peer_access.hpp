// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include <fanout/base/annotate.hpp>
#include <fanout/cuda/card.hpp>
#include <fanout/cuda/device_guard.hpp>
#include <fanout/cuda/memory_pool.hpp>
#include <fanout/cuda/page_locked.hpp>
#include <fanout/cuda/status.hpp>
#include <fanout/cuda/stream.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/right.hpp>

namespace fanout::inline v0::cuda {

/// How bytes get from one card to another.
struct PeerLink {
  int from = 0;
  int to = 0;
  /// Whether the cards copy between themselves; if not, through page-locked memory of the host.
  bool direct = false;
  /// Why not; empty if they do.
  std::string why;
};

namespace detail {

/// Memory of a card for one check.
class CheckedMemory {
 public:
  CheckedMemory(StreamRef stream, std::size_t bytes) : stream_(stream), data_(allocate_in(stream, bytes)) {}
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;
  ~CheckedMemory() { release_in(stream_, data_); }
  void* data() const noexcept { return data_; }

 private:
  StreamRef stream_;
  void* data_;
};

/// Host memory that cards read and write, for one check.
class CheckedHostMemory {
 public:
  CheckedHostMemory(Card& card, std::size_t bytes)
      : card_(card), data_(static_cast<unsigned char*>(allocate_page_locked(bytes, card))) {}
  CheckedHostMemory(const CheckedHostMemory&) = delete;
  CheckedHostMemory& operator=(const CheckedHostMemory&) = delete;
  ~CheckedHostMemory() { release_page_locked(data_, card_); }
  unsigned char* data() const noexcept { return data_; }

 private:
  Card& card_;
  unsigned char* data_;
};

/// Lets one card use another one's memory, for as long as it is kept.
class PeerAccess {
 public:
  PeerAccess(Card& card, Card& peer) : card_(card), peer_(peer) {}

  /// Empty, or why it cannot be.
  std::string open() {
    int can = 0;
    check(::cudaDeviceCanAccessPeer(&can, card_.index(), peer_.index()), "cudaDeviceCanAccessPeer", card_.index());
    if (can == 0) return name_of_card(card_.index()) + " cannot access " + name_of_card(peer_.index());
  }

 private:
  Card& card_;
  Card& peer_;
};

}  // namespace detail
}  // namespace fanout::inline v0::cuda

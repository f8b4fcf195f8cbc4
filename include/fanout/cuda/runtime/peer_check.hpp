// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/page_locked.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Lets a card use a peer's memory, and the memory of fanout's pool there. Stays so, unless close() is called.
class PeerAccess {
 public:
  PeerAccess(Card& card, Card& peer) noexcept : card_(card), peer_(peer) {}

  /// Empty if it may now, or why not. Throws DeviceLost and CudaError.
  std::string open() {
    const std::string names = name_of_card(card_.index()) + " to " + name_of_card(peer_.index());
    const DeviceGuard entered(card_);
    int can = 0;
    check(::cudaDeviceCanAccessPeer(&can, card_.index(), peer_.index()), "cudaDeviceCanAccessPeer", card_.index());
    if (can == 0) return "the hardware has no access from " + names;
    const cudaError_t status = ::cudaDeviceEnablePeerAccess(peer_.index(), 0);
    opened_ = status == cudaSuccess;
    if (!opened_ && status != cudaErrorPeerAccessAlreadyEnabled) {
      note(status, card_.index());
      refuse_lost(card_.index());
      return "no access from " + names + ": " + text_of(status);
    }
    note(status, card_.index());  // that somebody else had enabled it is no error
    const cudaError_t set = set_pool_access(cudaMemAccessFlagsProtReadWrite);
    if (set == cudaSuccess) return {};
    note(set, card_.index());
    refuse_lost(card_.index());
    return "no access from " + names + " to its pool: " + text_of(set);
  }

  /// What open() did is undone.
  void close() noexcept {
    const QuietGuard entered(card_);
    if (!entered.entered()) return;
    note(set_pool_access(cudaMemAccessFlagsProtNone), card_.index());
    if (opened_) note(::cudaDeviceDisablePeerAccess(peer_.index()), card_.index());
    opened_ = false;
  }

 private:
  cudaError_t set_pool_access(cudaMemAccessFlags flags) noexcept {
    cudaMemPool_t pool = peer_.pool().load(fanout::detail::MemoryOrder::acquire);
    cudaMemAccessDesc access{};
    access.location = {cudaMemLocationTypeDevice, card_.index()};
    access.flags = flags;
    return pool == nullptr ? cudaSuccess : ::cudaMemPoolSetAccess(pool, &access, 1);
  }

  Card& card_;
  Card& peer_;
  bool opened_ = false;
};

/// Memory of a card while a pair is checked.
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

/// Page-locked memory of the host while a pair is checked.
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

/// Waits for a stream at its end, so that nothing that work in it uses is given back before, also where a call failed.
class AwaitedStream {
 public:
  AwaitedStream(StreamRef stream, Card& card) noexcept : stream_(stream), card_(card) {}
  AwaitedStream(const AwaitedStream&) = delete;
  AwaitedStream& operator=(const AwaitedStream&) = delete;
  ~AwaitedStream() {
    const QuietGuard entered(card_);
    if (entered.entered()) note(::cudaStreamSynchronize(stream_.get()), card_.index());
  }

 private:
  StreamRef stream_;
  Card& card_;
};

/// What is copied to find out whether copies arrive: some bytes, a page, and two sizes of which no part is a whole
/// page, one of them beyond the size from which cards copy by other means.
inline constexpr std::size_t checked_sizes[] = {5, 4096, 100'003, (std::size_t{2} << 20) + 1};

/// Differs from position to position, from size to size and from pair to pair, so that nothing of an earlier copy is
/// taken for this one.
inline unsigned char checked_byte(std::size_t position, std::size_t size, int from, int to) noexcept {
  std::uint64_t mixed = position * 0x9e3779b97f4a7c15U + size * 0xbf58476d1ce4e5b9U +
                        static_cast<std::uint64_t>(from * most_cards + to + 1) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 29U;
  mixed *= 0xbf58476d1ce4e5b9U;
  return static_cast<unsigned char>(mixed >> 56U);
}

/// Copies from a card to another, and looks at what arrived. Empty, or what was wrong. Throws OutOfMemory and
/// CudaError.
inline std::string check_copies(Card& from, Card& to) {
  constexpr std::size_t most = checked_sizes[sizeof checked_sizes / sizeof checked_sizes[0] - 1];
  const Stream from_stream(from.index());
  const Stream to_stream(to.index());
  const CheckedHostMemory host(to, most);
  const CheckedMemory source(from_stream, most);
  const CheckedMemory target(to_stream, most);
  const AwaitedStream filling(from_stream, from);
  const AwaitedStream copying(to_stream, to);
  for (const std::size_t size : checked_sizes) {
    for (std::size_t i = 0; i < size; ++i) host.data()[i] = checked_byte(i, size, from.index(), to.index());
    {
      const DeviceGuard entered(from);
      check(::cudaMemcpyAsync(source.data(), host.data(), size, cudaMemcpyHostToDevice, from_stream.get()),
            "cudaMemcpyAsync", from.index());
    }
    from_stream.synchronize();
    std::memset(host.data(), 0, size);
    {
      const DeviceGuard entered(to);
      check(::cudaMemsetAsync(target.data(), 0, size, to_stream.get()), "cudaMemsetAsync", to.index());
      check(::cudaMemcpyPeerAsync(target.data(), to.index(), source.data(), from.index(), size, to_stream.get()),
            "cudaMemcpyPeerAsync", to.index());
      check(::cudaMemcpyAsync(host.data(), target.data(), size, cudaMemcpyDeviceToHost, to_stream.get()),
            "cudaMemcpyAsync", to.index());
    }
    to_stream.synchronize();
    for (std::size_t i = 0; i < size; ++i) {
      if (host.data()[i] == checked_byte(i, size, from.index(), to.index())) continue;
      return "a copy of " + std::to_string(size) + " bytes from " + name_of_card(from.index()) + " to " +
             name_of_card(to.index()) + " arrived wrong, first at byte " + std::to_string(i) +
             ", though CUDA reported success: see the machine's IOMMU and ACS settings";
    }
  }
  return {};
}

/// Makes two cards able to copy between themselves, if they can be trusted with it both ways. Empty if so; else why
/// not, and then it is as it was. Throws DeviceLost.
inline std::string connect_peers(Card& one, Card& other) {
  PeerAccess there(one, other);
  PeerAccess back(other, one);
  std::string why;
  try {
    static_cast<void>(pool_of(one));
    static_cast<void>(pool_of(other));
    why = there.open();
    if (why.empty()) why = back.open();
    if (why.empty()) why = check_copies(one, other);
    if (why.empty()) why = check_copies(other, one);
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    why = std::string("it could not be checked: ") + error.what();
  }
  if (!why.empty()) {
    there.close();
    back.close();
  }
  return why;
}

}}}  // namespace fanout::v0::cuda::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/transfer/peer_check.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace cuda::detail {

PeerFinding PeerAccess::open() {
  const std::string names = name_of_gpu(gpu_.index()) + " to " + name_of_gpu(peer_.index());
  const DeviceGuard entered(gpu_);
  int can = 0;
  check(::cudaDeviceCanAccessPeer(&can, gpu_.index(), peer_.index()), "cudaDeviceCanAccessPeer", gpu_.index());
  if (can == 0) return {"the hardware has no access from " + names};
  const cudaError_t status = ::cudaDeviceEnablePeerAccess(peer_.index(), 0);
  opened_ = status == cudaSuccess;
  if (!opened_ && status != cudaErrorPeerAccessAlreadyEnabled) {
    note(status, gpu_.index());
    refuse_lost(gpu_.index());
    return {"no access from " + names + ": " + text_of(status), denies_peers(status)};
  }
  note(status, gpu_.index());  // access that others had enabled is no error
  const cudaError_t set = set_pool_access(cudaMemAccessFlagsProtReadWrite);
  if (set == cudaSuccess) return {};
  note(set, gpu_.index());
  refuse_lost(gpu_.index());
  return {"no access from " + names + " to its pool: " + text_of(set), denies_peers(set)};
}

void PeerAccess::close() noexcept {
  const QuietGuard entered(gpu_);
  if (!entered.entered()) return;
  note(set_pool_access(cudaMemAccessFlagsProtNone), gpu_.index());
  if (opened_) note(::cudaDeviceDisablePeerAccess(peer_.index()), gpu_.index());
  opened_ = false;
}

cudaError_t PeerAccess::set_pool_access(cudaMemAccessFlags flags) noexcept {
  cudaMemPool_t pool = peer_.pool().load(fanout::detail::MemoryOrder::acquire);
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, gpu_.index()};
  access.flags = flags;
  return pool == nullptr ? cudaSuccess : ::cudaMemPoolSetAccess(pool, &access, 1);
}

unsigned char checked_byte(std::size_t position, std::size_t size, int from, int to) noexcept {
  std::uint64_t mixed = position * 0x9e3779b97f4a7c15U + size * 0xbf58476d1ce4e5b9U +
                        static_cast<std::uint64_t>(from * most_gpus + to + 1) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 29U;
  mixed *= 0xbf58476d1ce4e5b9U;
  return static_cast<unsigned char>(mixed >> 56U);
}

PeerFinding check_copies(GpuState& from, GpuState& to) {
  constexpr std::size_t most = checked_sizes[sizeof checked_sizes / sizeof checked_sizes[0] - 1];
  const Stream from_stream(from.index());
  const Stream to_stream(to.index());
  const CheckedHostMemory host(to, most);
  const CheckedMemory source(from_stream, most);
  const CheckedMemory target(to_stream, most);
  const Unfinished filling(from_stream);
  const Unfinished copying(to_stream);
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
      return {"a copy of " + std::to_string(size) + " bytes from " + name_of_gpu(from.index()) + " to " +
              name_of_gpu(to.index()) + " arrived wrong, first at byte " + std::to_string(i) +
              ", though CUDA reported success: see the machine's IOMMU and ACS settings"};
    }
  }
  return {};
}

PeerFinding connect_peers(GpuState& one, GpuState& other) {
  PeerAccess there(one, other);
  PeerAccess back(other, one);
  PeerFinding found;
  try {
    for (GpuState* const gpu : {&one, &other}) {
      if (gpu->source().load(fanout::detail::MemoryOrder::acquire) == nullptr) static_cast<void>(pool_of(*gpu));
    }
    found = there.open();
    if (found.direct()) found = back.open();
    if (found.direct()) found = check_copies(one, other);
    if (found.direct()) found = check_copies(other, one);
  } catch (const DeviceLost&) {
    throw;
  } catch (const CudaError& error) {
    found = {std::string("it could not be checked: ") + error.what(), denies_peers(error.code())};
  } catch (const Error& error) {
    found = {std::string("it could not be checked: ") + error.what(), false};
  }
  if (!found.direct()) {
    there.close();
    back.close();
  }
  return found;
}

}}}  // namespace fanout::v0::cuda::detail

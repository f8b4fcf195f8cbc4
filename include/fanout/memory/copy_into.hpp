// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// While this lives, tensors that are copied on this thread are copied into one memory. So the copy constructor of any
/// class makes its copy for a device, whatever its fields are. Its assignment makes that copy like the original again.
/// The copies have their contents only when finish() has returned.
///
/// Small arrays are sent together, since a transfer costs more than they do: in flat buffers of up to 10 MiB, as in
/// PyTorch's broadcast. If the memory has windows, their copies are parts of one buffer.
class CopyInto : private detail::CopyHook {
 public:
  explicit CopyInto(const Memory& to) noexcept
      : CopyHook{&CopyInto::copy_to},
        to_(to),
        before_(std::exchange(detail::copy_hook(), static_cast<CopyHook*>(this))) {}
  CopyInto(const CopyInto&) = delete;
  CopyInto& operator=(const CopyInto&) = delete;
  ~CopyInto() {
    detail::copy_hook() = before_;
    if (buffer_ != nullptr) buffer_->release();
    if (run_buffer_ != nullptr) run_buffer_->release();
  }

  /// Sends what has not been sent. Throws what transfer() throws.
  void finish() {
    if (run_bytes_ != 0) transfer(to_, run_, host_memory, staged_.data(), std::exchange(run_bytes_, 0));
  }

 private:
  static constexpr std::size_t small = std::size_t{1} << 18;
  static constexpr std::size_t largest_buffer = 10485760;
  /// The alignment of the parts of a buffer, in bytes. Kernels access arrays fastest that are aligned so.
  static constexpr std::size_t alignment = 256;

  static std::size_t aligned(std::size_t bytes) noexcept { return (bytes + alignment - 1) / alignment * alignment; }

  static void copy_to(CopyHook& self, detail::Storage& to, const detail::Storage& from) {
    static_cast<CopyInto&>(self).copy_storage(to, from);
  }

  void copy_storage(detail::Storage& to, const detail::Storage& from) {
    if (to.bytes() != from.bytes() || !(to.space() == to_.space)) to = make(from.bytes());
    if (from.space() == host_memory && to.memory().operations->release == &detail::release_window) {
      stage(to, from);
    } else {
      transfer(to_, to.data(), from.space(), from.data(), from.bytes());
    }
  }

  template <std::integral Size>
  detail::Storage make(Size bytes) {
    const MemoryOperations* const windows = detail::windows_in(to_);
    if (bytes == 0 || bytes >= small || windows == nullptr || to_.space == host_memory) return {to_, bytes};
    if (buffer_ == nullptr || used_ + bytes > buffer_->rows()) {
      const std::size_t wanted = buffer_ == nullptr ? small : 2 * buffer_->rows();
      auto* const larger = new detail::OutputBuffer(to_, wanted < largest_buffer ? wanted : largest_buffer, 1);
      if (buffer_ != nullptr) buffer_->release();
      buffer_ = larger;
      used_ = 0;
    }
    buffer_->retain();
    detail::Storage part({to_.space, windows}, buffer_->row(used_), bytes, buffer_);
    used_ += aligned(bytes);
    return part;
  }

  /// Stages an array. It is sent together with the bytes staged before if it lies right behind them in the same buffer.
  void stage(const detail::Storage& part, const detail::Storage& from) {
    auto* const to = static_cast<std::byte*>(part.data());
    auto* const buffer = static_cast<detail::OutputBuffer*>(part.owner());
    const bool follows = run_bytes_ != 0 && buffer == run_buffer_ && to == run_ + aligned(run_bytes_) &&
                         aligned(run_bytes_) + from.bytes() <= largest_buffer;
    if (!follows) {
      finish();
      buffer->retain();  // the copy may be gone before it is sent
      if (run_buffer_ != nullptr) run_buffer_->release();
      run_buffer_ = buffer;
      run_ = to;
    }
    const std::size_t begin = aligned(run_bytes_);
    const std::size_t end = begin + from.bytes();
    if (end > staged_.bytes()) {
      detail::Storage larger(Memory{}, 2 * end);
      if (run_bytes_ != 0) std::memcpy(larger.data(), staged_.data(), run_bytes_);
      staged_ = std::move(larger);
    }
    auto* const staged = static_cast<std::byte*>(staged_.data());
    if (begin != run_bytes_) std::memset(staged + run_bytes_, 0, begin - run_bytes_);
    std::memcpy(staged + begin, from.data(), from.bytes());
    run_bytes_ = end;
  }

  Memory to_;
  CopyHook* before_;
  detail::OutputBuffer* buffer_ = nullptr;      // the next small arrays get the rest of it
  std::size_t used_ = 0;                        // bytes of buffer_ in use
  detail::OutputBuffer* run_buffer_ = nullptr;  // the buffer that the staged bytes go to
  std::byte* run_ = nullptr;                    // their place in it
  std::size_t run_bytes_ = 0;
  detail::Storage staged_;
};

}}}  // namespace fanout::v0::backend

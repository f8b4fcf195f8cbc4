// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout::v0 {

/// What an atomic access orders besides itself: the values of std::memory_order, with the same meaning.
enum class MemoryOrder : int {
  relaxed = __ATOMIC_RELAXED,
  acquire = __ATOMIC_ACQUIRE,
  release = __ATOMIC_RELEASE,
  acq_rel = __ATOMIC_ACQ_REL,
  seq_cst = __ATOMIC_SEQ_CST,
};

/// std::atomic<T> for integers, bool and pointers, as far as this library needs it, made of the compiler's own operations
/// (those that std::atomic is made of). Not std::atomic itself, since <atomic> brings <mutex> and <system_error> along:
/// it would make up an eighth of what this library costs to include.
template <class T>
class Atomic {
 public:
  constexpr Atomic(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor): as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[gnu::always_inline]] T load(MemoryOrder order = MemoryOrder::seq_cst) const noexcept {
    return __atomic_load_n(&value_, static_cast<int>(order));
  }
  [[gnu::always_inline]] void store(T value, MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    __atomic_store_n(&value_, value, static_cast<int>(order));
  }
  [[gnu::always_inline]] T exchange(T value, MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_exchange_n(&value_, value, static_cast<int>(order));
  }
  [[gnu::always_inline]] T fetch_add(T value, MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_fetch_add(&value_, value, static_cast<int>(order));
  }
  [[gnu::always_inline]] T fetch_sub(T value, MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_fetch_sub(&value_, value, static_cast<int>(order));
  }
  [[gnu::always_inline]] T fetch_and(T value, MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_fetch_and(&value_, value, static_cast<int>(order));
  }

  /// Writes `value` where it finds `expected`; else reads what it finds into `expected`, ordered as a load by `order`.
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T value,
                                                      MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, value, false, static_cast<int>(order),
                                       static_cast<int>(of_load(order)));
  }
  /// The same, and may fail for no reason: for loops.
  [[gnu::always_inline]] bool compare_exchange_weak(T& expected, T value,
                                                    MemoryOrder order = MemoryOrder::seq_cst) noexcept {
    return __atomic_compare_exchange_n(&value_, &expected, value, true, static_cast<int>(order),
                                       static_cast<int>(of_load(order)));
  }

 private:
  static constexpr MemoryOrder of_load(MemoryOrder order) noexcept {
    return order == MemoryOrder::acq_rel   ? MemoryOrder::acquire
           : order == MemoryOrder::release ? MemoryOrder::relaxed
                                           : order;
  }

  T value_;
};

}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "machine.hpp"

// Replaces the library's header: the same interface, on the modelled machine.

namespace fanout { inline namespace v0 { namespace detail {

using MemoryOrder = interleavings::Order;

template <class T>
class Atomic {
  using Machine = interleavings::Machine;
  using Operation = interleavings::Operation;
  using Place = interleavings::Place;

 public:
  constexpr Atomic(T value) noexcept : value_(value) {
    if (!std::is_constant_evaluated() && Machine::now() != nullptr) Machine::now()->add(this, bits(value));
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  constexpr ~Atomic() {
    if (!std::is_constant_evaluated() && Machine::now() != nullptr) Machine::now()->remove(this);
  }

  T load(MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) const noexcept {
    return value(Machine::now()->load(this, order, place));
  }
  void store(T value, MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) noexcept {
    Machine::now()->store(this, bits(value), order, place);
  }
  T exchange(T value, MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) noexcept {
    const auto change = [](std::uint64_t, std::uint64_t operand) { return operand; };
    return modify(change, value, Operation::exchange, order, place);
  }
  T fetch_add(T value, MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) noexcept {
    const auto change = [](std::uint64_t found, std::uint64_t operand) {
      return bits(static_cast<T>(found + operand));
    };
    return modify(change, value, Operation::fetch, order, place);
  }
  T fetch_sub(T value, MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) noexcept {
    const auto change = [](std::uint64_t found, std::uint64_t operand) {
      return bits(static_cast<T>(found - operand));
    };
    return modify(change, value, Operation::fetch, order, place);
  }
  T fetch_and(T value, MemoryOrder order = MemoryOrder::seq_cst, const Place& place = Place::current()) noexcept {
    const auto change = [](std::uint64_t found, std::uint64_t operand) { return found & operand; };
    return modify(change, value, Operation::fetch, order, place);
  }
  bool compare_exchange_strong(T& expected, T value, MemoryOrder order = MemoryOrder::seq_cst,
                               const Place& place = Place::current()) noexcept {
    return compare_exchange(expected, value, order, false, place);
  }
  bool compare_exchange_weak(T& expected, T value, MemoryOrder order = MemoryOrder::seq_cst,
                             const Place& place = Place::current()) noexcept {
    return compare_exchange(expected, value, order, true, place);
  }

 private:
  static std::uint64_t bits(T value) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<std::uintptr_t>(value);
    } else {
      return static_cast<std::uint64_t>(value);
    }
  }
  static T value(std::uint64_t bits) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<T>(static_cast<std::uintptr_t>(bits));
    } else {
      return static_cast<T>(bits);
    }
  }

  T modify(Machine::Change change, T operand, Operation what, MemoryOrder order, const Place& place) noexcept {
    return value(Machine::now()->modify(this, change, bits(operand), what, order, place));
  }

  bool compare_exchange(T& expected, T desired, MemoryOrder order, bool weak, const Place& place) noexcept {
    const auto exchanged = Machine::now()->compare_exchange(this, bits(expected), bits(desired), order, weak, place);
    if (!exchanged.written) expected = value(exchanged.found);
    return exchanged.written;
  }

  // Only for the size: the machine keeps the value, by the address of the atomic.
  [[maybe_unused]] T value_;
};

}}}  // namespace fanout::v0::detail

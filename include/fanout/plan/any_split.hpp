// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <fanout/plan/even_split.hpp>
#include <fanout/plan/split.hpp>

namespace fanout::inline v0 {

/// A split policy of any type, by value, so that options need no template parameter. It is asked once per call, through
/// one function pointer; the default is EvenSplit.
class AnySplit {
 public:
  AnySplit() : AnySplit(EvenSplit{}) {}

  template <class S>
    requires(!std::is_same_v<std::remove_cvref_t<S>, AnySplit> && Split<std::remove_cvref_t<S>>)
  AnySplit(S&& split)  // NOLINT(*-explicit-constructor,*-forwarding-reference-overload): .split = EvenSplit{}
      : operations_(&operations_of<std::remove_cvref_t<S>>),
        split_(new std::remove_cvref_t<S>(std::forward<S>(split))) {}

  // No move: a policy that was moved from could not be asked any more.
  AnySplit(const AnySplit& other) : operations_(other.operations_), split_(operations_->copy(other.split_)) {}
  AnySplit& operator=(AnySplit other) noexcept {
    std::swap(operations_, other.operations_);
    std::swap(split_, other.split_);
    return *this;
  }
  ~AnySplit() { operations_->destroy(split_); }

  Plan operator()(std::size_t rows, std::size_t devices) const { return operations_->ask(split_, rows, devices); }

 private:
  struct Operations {
    Plan (*ask)(const void*, std::size_t, std::size_t);
    void* (*copy)(const void*);
    void (*destroy)(void*) noexcept;
  };
  template <class S>
  static constexpr Operations operations_of = {
      [](const void* split, std::size_t rows, std::size_t devices) -> Plan {
        return (*static_cast<const S*>(split))(rows, devices);
      },
      [](const void* split) -> void* { return new S(*static_cast<const S*>(split)); },
      [](void* split) noexcept { delete static_cast<S*>(split); }};

  const Operations* operations_;
  void* split_;
};
static_assert(Split<AnySplit>);

}  // namespace fanout::inline v0

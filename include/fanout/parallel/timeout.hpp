// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#if defined(__GXX_RTTI)
#include <typeinfo>
#endif

#include <fanout/base/annotate.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/parallel/late_shard.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout::inline v0 {

/// Thrown by a call that took longer than its deadline, after all of its shards have ended. Holds what those returned
/// that were in time.
class FANOUT_EXPORT Timeout : public Error {
 public:
  /// `late` is not empty and in row order; `shards` is how many there were in all.
  Timeout(SmallVector<LateShard> late, std::size_t shards, Duration deadline)
      : Error(text(late, shards, deadline)), late_(std::move(late)) {}
  Timeout(const Timeout& other) : Error(other), late_(other.late_), results_(other.results_) {
    if (results_ != nullptr) results_->holders.fetch_add(1, MemoryOrder::relaxed);
  }
  Timeout& operator=(Timeout other) noexcept {
    Error::operator=(other);
    std::swap(late_, other.late_);
    std::swap(results_, other.results_);
    return *this;
  }
  ~Timeout() override {
    if (results_ != nullptr && results_->holders.fetch_sub(1, MemoryOrder::acq_rel) == 1) results_->destroy(results_);
  }

  /// The shards that were late, lowest rows first.
  const SmallVector<LateShard>& late() const noexcept { return late_; }

  /// What the call would have returned if it had been made with the rows of the other shards only; null if none was in
  /// time, if their results do not fit together, or if the call returns another type than R. Lives as long as this
  /// error.
  template <class R>
  const R* results() const noexcept {
    if (results_ == nullptr || !holds<R>(*results_)) return nullptr;
    return &static_cast<const Held<R>*>(results_)->value;
  }

  /// Keeps them, as what `make()` returns.
  template <class Make>
  void keep_results(const Make& make) {
    results_ = new Held<std::remove_cvref_t<decltype(make())>>(make);
  }

 private:
  struct Results {
    Atomic<std::size_t> holders{1};
    const void* type = nullptr;
    void (*destroy)(Results*) noexcept = nullptr;
  };
  template <class R>
  struct Held : Results {
    template <class Make>
    explicit Held(const Make& make)
        : Results{.type = type_of<R>(), .destroy = [](Results* self) noexcept { delete static_cast<Held*>(self); }},
          value(make()) {}
    R value;
  };

  template <class R>
  static constexpr char tag = 0;
  template <class R>
  static const void* type_of() noexcept {
#if defined(__GXX_RTTI)
    return &typeid(R);
#else
    return &tag<R>;
#endif
  }
  template <class R>
  static bool holds(const Results& results) noexcept {
#if defined(__GXX_RTTI)
    return *static_cast<const std::type_info*>(results.type) == typeid(R);  // also one of another shared library
#else
    return results.type == type_of<R>();
#endif
  }

  static std::string text(const SmallVector<LateShard>& late, std::size_t shards, Duration deadline) {
    std::string text = std::to_string(late.size()) + " of " + std::to_string(shards) +
                       (shards == 1 ? " shard" : " shards") + " took longer than the deadline of " +
                       std::to_string(deadline.nanoseconds() / 1000) + " us";
    for (const LateShard& shard : late) {
      text += "\n  shard " + std::to_string(shard.shard) + " on device " + to_string(shard.device) + ", rows " +
              to_string(shard.rows);
    }
    return text;
  }

  SmallVector<LateShard> late_;
  Results* results_ = nullptr;
};

}  // namespace fanout::inline v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/type_info.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

/// Thrown by a call that took longer than its deadline, after all its shards have ended. Holds the results of the
/// shards that were in time. If several ranks make the call, it may be one of them that is late: then all throw this.
class [[gnu::visibility("default")]] Timeout : public Error {
 public:
  /// `late` must not be empty, and must be in row order. `shards` is the number of all shards.
  FANOUT_INLINE Timeout(detail::SmallVector<LateShard> late, std::size_t shards, Duration deadline);
  /// `missing` are the ranks that were late, and `text` says so.
  FANOUT_INLINE Timeout(const std::string& text, detail::SmallVector<std::size_t> missing);
  FANOUT_INLINE Timeout(const Timeout& other) noexcept;
  FANOUT_INLINE Timeout& operator=(const Timeout& other) noexcept;
  // Inline, so that each shared library has a weak vtable: AddressSanitizer refuses two strong ones.
  ~Timeout() override {
    if (kept_->holders.fetch_sub(1, detail::MemoryOrder::acq_rel) == 1) release();
  }

  /// The late shards, lowest rows first. Live as long as this error and its copies.
  const detail::SmallVector<LateShard>& late() const noexcept { return kept_->late; }

  /// The ranks that were late, lowest first: they had not arrived at the deadline, or shards of theirs were late. Empty
  /// if late() is not. Live as long as this error and its copies.
  const detail::SmallVector<std::size_t>& missing() const noexcept { return kept_->missing; }

  /// The result of the call for the rows of the other shards. Null if no shard was in time, if their results do not fit
  /// together, or if the call returns another type than R. Lives as long as this error and its copies.
  template <class R>
  const R* results() const noexcept {
    return kept_->results == nullptr || !detail::same_type(kept_->results->type, detail::type_id<R>())
               ? nullptr
               : &static_cast<const ResultsOf<R>*>(kept_->results)->value;
  }

  /// Stores the results, which `make()` returns. Must be called once, before this is copied.
  template <class Make>
  void keep_results(const Make& make) {
    kept_->results = new ResultsOf<std::remove_cvref_t<decltype(make())>>(make);
  }

  /// `50 ms`
  [[gnu::cold]] FANOUT_INLINE static std::string to_text(Duration time);

 private:
  struct Results {
    explicit Results(const void* of) noexcept : type(of) {}
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;
    virtual ~Results() = default;
    const void* const type;
  };
  template <class R>
  struct ResultsOf final : Results {
    template <class Make>
    explicit ResultsOf(const Make& make) : Results(detail::type_id<R>()), value(make()) {}
    const R value;
  };

  /// The state that all copies share.
  struct Kept {
    detail::SmallVector<LateShard> late;
    detail::SmallVector<std::size_t> missing;
    Results* results = nullptr;
    detail::Atomic<std::size_t> holders{1};
  };

  FANOUT_INLINE void release() const noexcept;

  Kept* kept_;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/timeout.ipp>
#endif

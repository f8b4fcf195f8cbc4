// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/base/type_info.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 {

/// Thrown by a call that took longer than its deadline, after all its shards have ended. Holds the results of the
/// shards that were in time. If several ranks make the call, it may be one of them that is late: then all throw this.
class [[gnu::visibility("default")]] Timeout : public Error {
 public:
  // Some members are templates, so that code without a deadline does not compile the lists and texts.

  /// `late`, a SmallVector<LateShard>, must not be empty, and must be in row order. `shards` is the number of all
  /// shards.
  template <class Late>
  Timeout(Late late, std::size_t shards, Duration deadline)
      : Timeout(text(late, shards, deadline), std::move(late), SmallRanks()) {}
  /// `missing`, a SmallVector<std::size_t>, has the ranks that were late, and `text` says so.
  template <class Missing>
  Timeout(const std::string& text, Missing missing)
      : Timeout(text, detail::SmallVector<LateShard>(), std::move(missing)) {}
  Timeout(const Timeout& other) noexcept : Error(other), kept_(other.kept_) {
    kept_->holders.fetch_add(1, detail::MemoryOrder::relaxed);
  }
  Timeout& operator=(Timeout other) noexcept {
    Error::operator=(other);
    detail::swap(kept_, other.kept_);
    return *this;
  }
  ~Timeout() override {
    if (kept_->holders.fetch_sub(1, detail::MemoryOrder::acq_rel) == 1) delete kept_;
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
  static std::string to_text(Duration time) {
    const std::int64_t microseconds = time.nanoseconds() / 1000;
    if (microseconds != 0 && microseconds % 1'000'000 == 0) return std::to_string(microseconds / 1'000'000) + " s";
    if (microseconds != 0 && microseconds % 1000 == 0) return std::to_string(microseconds / 1000) + " ms";
    return std::to_string(microseconds) + " us";
  }

 private:
  using SmallRanks = detail::SmallVector<std::size_t>;

  // By reference: the text may be made of what is moved here.
  template <class Late, class Missing>
  Timeout(const std::string& text, Late&& late, Missing&& missing)
      : Error(text), kept_(new KeptBy<Late, Missing>(std::forward<Late>(late), std::forward<Missing>(missing))) {}

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
    Kept(const detail::SmallVector<LateShard>& shards, const SmallRanks& ranks) noexcept
        : late(shards), missing(ranks) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    virtual ~Kept() { delete results; }
    detail::Atomic<std::size_t> holders{1};
    const detail::SmallVector<LateShard>& late;
    const SmallRanks& missing;
    Results* results = nullptr;
  };
  template <class Late, class Missing>
  struct KeptBy final : Kept {
    KeptBy(Late&& shards, Missing&& absent) : Kept(list, ranks), list(std::move(shards)), ranks(std::move(absent)) {}
    Late list;
    Missing ranks;
  };

  template <class Late>
  static std::string text(const Late& late, std::size_t shards, Duration deadline) {
    std::string text = std::to_string(late.size()) + " of " + std::to_string(shards) +
                       (shards == 1 ? " shard" : " shards") + " took longer than the deadline of " + to_text(deadline);
    for (const auto& shard : late) {
      text += "\n  shard " + std::to_string(shard.shard) + " on device " + to_string(shard.device) + ", rows " +
              to_string(shard.rows);
    }
    return text;
  }

  Kept* kept_;
};

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The type of a call, for processes that must make the same calls.
struct RankedCallType {
  /// A model M whose call returns an R.
  template <class M, class R>
  static const RankedCallType& of() {
    static const RankedCallType type = [] {
      RankedCallType made{.name = "of " + type_name<M>() + " that returns " + type_name<R>()};
      for (const char letter : made.name) mix_word(made.hash, static_cast<unsigned char>(letter));
      return made;
    }();
    return type;
  }

  std::string name;
  std::uint64_t hash = hash_of_nothing;
};

/// Numbers the calls that a model makes together with other processes, also those that fail before their shards run. The
/// numbers are the same on all processes.
struct RankedCalls {
  Atomic<std::uint32_t> count{0};
};

/// The steps that one call makes together with other processes: one that begins it, one for combined fields, one for
/// reductions. If there are no other processes, all functions do nothing. A call that fails tells the others at its
/// next step.
///
/// `fields` and `result`: what a call of this type combines. Without both, a process that fails needs to tell nobody.
/// `Type` is always RankedCallType: as a template, this costs nothing to compile in a file that calls no model.
template <class Type>
class RankedCall {
 public:
  RankedCall(const backend::ProcessRanks* ranks, RankedCalls& calls, const Type& (*type)(), bool fields,
             bool result) noexcept
      : ranks_(ranks), type_(type), left_(ranks == nullptr ? 0 : 1 + (fields ? 1 : 0) + (result ? 1 : 0)) {
    if (ranks != nullptr) number_ = calls.count.fetch_add(1, MemoryOrder::relaxed);
  }
  RankedCall(RankedCall&& other) noexcept
      : ranks_(other.ranks_),
        type_(other.type_),
        left_(detail::exchange(other.left_, 0)),
        number_(other.number_),
        rows_(other.rows_),
        shards_(other.shards_) {}
  RankedCall& operator=(RankedCall&&) = delete;
  /// Tells the others if the call does not go on, as when a Pending is destroyed.
  ~RankedCall() {
    if (left_ != 0) leave();
  }

  /// True if there are other processes.
  bool has_others() const noexcept { return ranks_ != nullptr; }
  std::size_t rank() const noexcept { return ranks_ == nullptr ? 0 : ranks_->rank(); }

  /// Waits until all processes have begun the call, and sets where this plan stands in the whole batch.
  void begin(const Plan& plan, CallStart& start) {
    if (ranks_ == nullptr) return;
    start.number = number_;
    rows_ = plan.rows();
    shards_ = plan.size();
    const int left = detail::exchange(left_, 0) - 1;  // if the step throws, all processes have ended the call
    start.place = ranks_->begin(step(nullptr));
    left_ = left;
  }

  /// Combines the values that `visit(f)` shows: it calls `f(fold, elements, path)` for each.
  template <class Visit>
  void combine(const Visit& visit) {
    if (ranks_ == nullptr) return;
    RankedValues<backend::RankedValue> values;
    visit([&values](const backend::RankFold& fold, const auto& elements, const LeafPath&) {
      values.add(fold, elements);
    });
    const auto describe = [this, &visit] {
      std::string text;
      visit([&text](const backend::RankFold& fold, const auto& elements, const LeafPath& path) {
        describe_value(text, fold, elements, path);
      });
      return name() + ": " + text;
    };
    backend::RankedStep next = step(nullptr);
    next.hash ^= values.hash() + static_cast<std::uint64_t>(left_);
    next.of = &describe;
    next.name = [](const void* of) { return (*static_cast<const decltype(describe)*>(of))(); };
    const int left = detail::exchange(left_, 0) - 1;
    ranks_->combine(next, values.get());
    left_ = left;
  }

  /// Call this in the `catch` block of what ends the call. Throws what all processes throw. Returns if they do not wait
  /// for this one.
  [[gnu::cold, gnu::noinline]] void fail() {
    if (detail::exchange(left_, 0) != 0) ranks_->combine(step(std::current_exception()), {});
  }

  /// The same, but returns the exception.
  [[gnu::cold, gnu::noinline]] std::exception_ptr failure() noexcept {
    std::exception_ptr own = std::current_exception();
    try {
      fail();
    } catch (...) {
      own = std::current_exception();
    }
    return own;
  }

 private:
  backend::RankedStep step(const std::exception_ptr& failure) const {
    return {.hash = type_().hash ^ (std::uint64_t{number_} * 0x9E3779B97F4A7C15U),
            .name = [](const void* of) { return static_cast<const RankedCall*>(of)->name(); },
            .of = this,
            .rows = rows_,
            .shards = shards_,
            .failure = failure};
  }

  std::string name() const { return "call " + std::to_string(number_) + " " + type_().name; }

  [[gnu::cold, gnu::noinline]] void leave() noexcept {
    try {
      throw Error(explain({.what = "the result of an asynchronous call was not taken on a rank",
                           .where = name(),
                           .advice = "call get() on all ranks, in the same order"}));
    } catch (...) {
      static_cast<void>(failure());
    }
  }

  const backend::ProcessRanks* ranks_;
  const Type& (*type_)();
  int left_;  // steps that other processes may still wait for
  std::uint32_t number_ = 0;
  std::size_t rows_ = 0;
  std::size_t shards_ = 0;
};

/// Stands for a RankedCall if no step is made whatever the options.
struct UnrankedCall {
  UnrankedCall(const backend::ProcessRanks*, const RankedCalls&) noexcept {}
  UnrankedCall() noexcept = default;
  static bool has_others() noexcept { return false; }
  static std::size_t rank() noexcept { return 0; }
  static void begin(const Plan&, CallStart&) noexcept {}
  template <class Visit>
  static void combine(const Visit&) noexcept {}
  static void fail() noexcept {}
  static std::exception_ptr failure() noexcept { return std::current_exception(); }
};

/// The steps of a call of model M that returns an R.
template <class M, class R, bool fields>
struct RankedCallOf : RankedCall<RankedCallType> {
  RankedCallOf(const backend::ProcessRanks* ranks, RankedCalls& calls) noexcept
      : RankedCall<RankedCallType>(ranks, calls, &RankedCallType::of<M, R>, fields, has_reductions<R>) {}
};

}}}  // namespace fanout::v0::detail

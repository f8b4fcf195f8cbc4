// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/checks.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/fwd.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Calls the model with what this batch holds, which is moved from.
template <class Model, class Batch>
auto post_batch(const Model& model, Batch& batch) {
  if constexpr (TupleNode<Batch> && !UniformTuple<Batch>) {
    return std::apply([&model](auto&... inputs) { return model.async(std::move(inputs)...); }, batch);
  } else {
    return model.async(std::move(batch));
  }
}

/// The results of a model for batches that `batches.next()` gives, one after the other. Made by
/// ParallelModel::stream().
template <class Model, class Batches>
class ResultStream {
  using Source = std::remove_reference_t<Batches>;
  using Batch = typename std::remove_reference_t<decltype(std::declval<Source&>().next())>::value_type;
  using Call = decltype(post_batch(std::declval<const Model&>(), std::declval<Batch&>()));

 public:
  using Result = decltype(std::declval<Call&>().get());

  ResultStream(const Model& model, Batches&& batches) : model_(&model), batches_(std::forward<Batches>(batches)) {}

  class Iterator {
   public:
    using value_type = Result;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(ResultStream& stream) noexcept : stream_(&stream) {}

    /// The result. If FANOUT_CHECKS is 1, throws InvalidArgument at the end.
    Result& operator*() const {
      if (FANOUT_CHECKS && !stream_->result_) {
        throw InvalidArgument(explain({.what = "there is no result at the end of a stream",
                                       .where = "ParallelModel::stream",
                                       .advice = "compare with end() first"}));
      }
      return *stream_->result_;  // NOLINT(bugprone-unchecked-optional-access): the caller compares with end()
    }
    Iterator& operator++() {
      stream_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !stream_->result_; }

   private:
    ResultStream* stream_;
  };

  /// Goes on with the next result.
  Iterator begin() {
    advance();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() {
    result_.reset();  // first, so that its memory is free
    if (!call_) bring_next();
    if (failure_ != nullptr && !call_) std::rethrow_exception(detail::exchange(failure_, nullptr));
    if (!call_) return;
    Call running = std::move(*call_);
    call_.reset();
    bring_next();
    static_cast<void>(result_.emplace(running.get()));
  }

  /// Posts the call of the next batch, if there is one. An error of the batch waits for its turn.
  void bring_next() noexcept {
    if (failure_ != nullptr) return;
    try {
      if (std::optional<Batch> batch = batches_.next()) static_cast<void>(call_.emplace(post_batch(*model_, *batch)));
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  const Model* model_;
  Batches batches_;
  std::optional<Call> call_;  // of the batch after that of the result
  std::exception_ptr failure_;
  std::optional<Result> result_;
};

}  // namespace detail

template <class M, class Source>
template <class Batches>
detail::ResultStream<ParallelModel<M, Source>, Batches> ParallelModel<M, Source>::stream(Batches&& batches) const {
  return {*this, std::forward<Batches>(batches)};
}

}}  // namespace fanout::v0

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

template <class Batches>
concept GivesBatches = requires(Batches& batches) {
  typename std::remove_reference_t<decltype(batches.next())>::value_type;
};

template <GivesBatches Batches>
using batch_of_t = typename std::remove_reference_t<decltype(std::declval<Batches&>().next())>::value_type;

template <class Model, class Batch>
using posted_t = decltype(post_batch(std::declval<const Model&>(), std::declval<Batch&>()));

template <class Model, class Batches>
concept GivesNoResults =
    GivesBatches<Batches> && std::is_void_v<decltype(std::declval<posted_t<Model, batch_of_t<Batches>>&>().get())>;

/// The results of a model for batches that `batches.next()` gives, one after the other. Made by
/// ParallelModel::stream().
template <class Model, class Batches>
class ResultStream {
  using Source = std::remove_reference_t<Batches>;
  using Batch = batch_of_t<Source>;
  using Call = posted_t<Model, Batch>;

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
    if (failure_ != nullptr && !call_) std::rethrow_exception(std::exchange(failure_, nullptr));
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

/// A range that stands for a stream that was refused, so that no other error follows.
struct RefusedStream {
  template <class... X>
  explicit(false) RefusedStream(const X&...) {}

  int* begin() const noexcept { return nullptr; }
  int* end() const noexcept { return nullptr; }
};

template <class Model, class Batches>
  requires(!GivesBatches<std::remove_reference_t<Batches>>)
class ResultStream<Model, Batches> : public RefusedStream {
  static_assert(GivesBatches<std::remove_reference_t<Batches>>,
                "fanout: model.stream() takes the batches of an epoch: pass loader.epoch(e), and no loader");

 public:
  using RefusedStream::RefusedStream;
};

template <class Model, class Batches>
  requires GivesNoResults<Model, std::remove_reference_t<Batches>>
class ResultStream<Model, Batches> : public RefusedStream {
  static_assert(!GivesNoResults<Model, std::remove_reference_t<Batches>>,
                "fanout: model.stream() gives the results of forward, and this forward returns nothing; call the model "
                "with each batch of the epoch");

 public:
  using RefusedStream::RefusedStream;
};

}  // namespace detail

template <class M, class Source>
template <class Batches>
detail::ResultStream<ParallelModel<M, Source>, Batches> ParallelModel<M, Source>::stream(Batches&& batches) const {
  return {*this, std::forward<Batches>(batches)};
}

}}  // namespace fanout::v0

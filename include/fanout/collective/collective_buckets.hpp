// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/worker/background_jobs.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// The bytes from which a bucket is full: the first one, so that the ranks begin early, and the others. The defaults
/// are those of PyTorch's DistributedDataParallel.
struct BucketSizes {
  std::size_t first = std::size_t{1} << 20;
  std::size_t others = std::size_t{25} << 20;
};

/// Reductions that run while the rank goes on: `communicator.buckets()` makes it, on all ranks. Borrows the
/// communicator.
///
///     auto communicator = ctx.communicator();
///     auto buckets = communicator.buckets();
///     for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
///       layer->backward();
///       buckets.all_reduce_async(layer->gradient);  // while the layers below compute theirs
///     }
///     buckets.wait();
///
/// Arrays are collected in buckets. Full buckets run on one more thread, in the order of the calls. If an array of a
/// bucket is not in host memory, or the communicator allows no other thread, the bucket runs on the calling thread as a
/// group() does. Other collectives of the communicator wait for the buckets first.
template <class Communicator>
class CollectiveBuckets {
 public:
  CollectiveBuckets(Communicator& communicator, const BucketSizes& sizes)
      : communicator_(communicator), sizes_(sizes), limit_(sizes.first), running_(Run{&communicator}) {
    if (communicator_.buckets_ != nullptr) {
      throw Error(explain({.what = "a communicator has buckets already",
                           .where = "communicator.buckets()",
                           .advice = "use those, or destroy them first"}));
    }
    communicator_.buckets_ = this;
  }
  CollectiveBuckets(const CollectiveBuckets&) = delete;
  CollectiveBuckets& operator=(const CollectiveBuckets&) = delete;

  /// Waits like wait(). If an exception ends it, drops the buckets that have not begun and waits for the one that has.
  ~CollectiveBuckets() noexcept(false) {
    struct Unregistered {
      CollectiveBuckets& own;
      ~Unregistered() { own.communicator_.buckets_ = nullptr; }
    } const unregistered{*this};
    if (std::uncaught_exceptions() == exceptions_) wait();
  }

  /// All ranks get the reduction of all ranks' elements, in place: x [extents...] on each rank, or a tree of arrays.
  /// Borrows the arrays: they must live, and nobody may touch them, until wait() returns. Does not wait, unless a full
  /// bucket runs on this thread. Throws as all_reduce() does, and what earlier buckets have thrown.
  template <class X>
  void all_reduce_async(X&& x, Reduction by = Reduction::sum) {
    std::vector<Collective> calls =
        communicator_.template calls_for<true>({.kind = Collective::Kind::all_reduce, .reduction = by}, x);
    for (Collective& call : calls) {
      bytes_ += call.bytes();
      open_.push_back(std::move(call));
      if (bytes_ >= limit_) close(true);
    }
  }

  /// Runs the bucket that is not full, and waits until all have run. Throws what they throw; then buckets after the one
  /// that threw have not run.
  void wait() {
    close(false);
    running_.wait();
  }

  /// True if nothing is left to be reduced. Does not wait.
  bool ready() const { return open_.empty() && running_.ready(); }

 private:
  struct Run {
    Communicator* communicator;
    void operator()(std::vector<Collective>& calls) const { communicator->run(calls.data(), calls.size()); }
  };

  /// Starts the open bucket. `early`: the rank goes on, so that another thread is worth it.
  void close(bool early) {
    limit_ = early ? sizes_.others : sizes_.first;
    bytes_ = 0;
    std::vector<Collective> calls = std::exchange(open_, {});
    if (calls.empty()) return;
    if (early && may_run_behind(calls) && running_.add(calls)) return;
    running_.wait();
    Run{&communicator_}(calls);
  }

  bool may_run_behind(const std::vector<Collective>& calls) const {
    if constexpr (requires { communicator_.allows_any_thread(); }) {
      if (!communicator_.allows_any_thread()) return false;
    }
    for (const Collective& call : calls) {
      if (!(call.from_space == host_memory)) return false;
    }
    return true;
  }

  Communicator& communicator_;
  BucketSizes sizes_;
  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::vector<Collective> open_;
  int exceptions_ = std::uncaught_exceptions();
  detail::BackgroundJobs<std::vector<Collective>, Run> running_;
};

}}}  // namespace fanout::v0::backend

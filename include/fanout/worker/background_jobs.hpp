// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include <pthread.h>

#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Calls `run(job)` on a thread of its own for one job after the other, under the floating-point modes of the thread
/// that added the job. If one throws, drops those that wait. One thread at a time may use it.
template <class Job, class Run>
class BackgroundJobs {
 public:
  explicit BackgroundJobs(Run run) : run_(std::move(run)) {}
  BackgroundJobs(const BackgroundJobs&) = delete;
  BackgroundJobs& operator=(const BackgroundJobs&) = delete;
  /// Drops jobs that have not begun, and waits for the one that has.
  ~BackgroundJobs() {
    {
      const std::lock_guard lock(mutex_);
      jobs_.clear();
      closed_ = true;
    }
    changed_.notify_all();
    if (started_) ::pthread_join(thread_, nullptr);
  }

  /// Returns false if no thread can be started. Then the caller keeps the job. Throws what a job has thrown, once.
  bool add(Job& job) {
    const std::lock_guard lock(mutex_);
    throw_failure();
    const auto enter = [](void* own) -> void* {
      static_cast<BackgroundJobs*>(own)->work();
      return nullptr;
    };
    if (!started_ && !start_thread({}, enter, this, "fanout jobs", &thread_)) return false;
    started_ = true;
    jobs_.push_back({std::move(job), FloatingPointModes::current()});
    changed_.notify_all();
    return true;
  }

  /// Waits until all jobs have run. Throws what a job has thrown, once.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return idle(); });
    throw_failure();
  }

  /// True if wait() would not wait.
  bool ready() const {
    const std::lock_guard lock(mutex_);
    return idle();
  }

 private:
  struct Queued {
    Job job;
    FloatingPointModes modes;
  };

  bool idle() const noexcept { return jobs_.empty() && !busy_; }

  void throw_failure() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void work() noexcept {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Queued next = std::move(jobs_.front());
      jobs_.pop_front();
      busy_ = true;
      lock.unlock();
      std::exception_ptr failure;
      try {
        next.modes.restore();
        run_(next.job);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      busy_ = false;
      if (failure != nullptr) {
        failure_ = std::move(failure);
        jobs_.clear();
      }
      changed_.notify_all();
    }
  }

  Run run_;
  pthread_t thread_{};
  bool started_ = false;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Queued> jobs_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool closed_ = false;
};

}}}  // namespace fanout::v0::detail

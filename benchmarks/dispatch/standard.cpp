// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the standard library has. Contenders: atomic_wait, condition_variable (a queue of tasks with a mutex, and
// futures) and barrier have one worker, bound to the second core, beside the caller, bound to the first; async and
// thread start a thread in each call, which is not bound, since what it costs to bind it would be counted.

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include <dispatch/cases.hpp>

namespace {

using benchmarks::Bodies;

/// Sleeps on an atomic until there is a call, and the caller sleeps on another one until it is done.
class AtomicWait {
 public:
  explicit AtomicWait(int core) : worker_([this, core] { serve(core); }) {}
  ~AtomicWait() { post(nullptr); }

  void operator()(const Bodies& bodies) const {
    post(&bodies);
    bodies(0);
    const unsigned call = call_.load(std::memory_order_relaxed);
    for (unsigned done; (done = done_.load(std::memory_order_acquire)) != call;) done_.wait(done);
  }

 private:
  void post(const Bodies* bodies) const {
    bodies_ = bodies;
    call_.fetch_add(1, std::memory_order_release);
    call_.notify_one();
  }

  void serve(int core) {
    benchmarks::bind_to(core);
    for (unsigned call = 0;; ++call) {
      call_.wait(call, std::memory_order_acquire);
      if (bodies_ == nullptr) return;
      (*bodies_)(1);
      // Not with release alone: libstdc++ 12 looks for a sleeper with an acquire, which x86 may do before the store
      // gets out, and then nobody wakes the caller.
      done_.store(call + 1);
      done_.notify_one();
    }
  }

  mutable const Bodies* bodies_ = nullptr;
  alignas(128) mutable std::atomic<unsigned> call_{0};
  alignas(128) mutable std::atomic<unsigned> done_{0};
  std::jthread worker_;
};

/// The thread pool that everybody has written once.
class TaskQueue {
 public:
  explicit TaskQueue(int core) : worker_([this, core](const std::stop_token& stop) { serve(core, stop); }) {}

  void operator()(const Bodies& bodies) const {
    std::packaged_task<void()> task([&bodies] { bodies(1); });
    std::future<void> done = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    some_.notify_one();
    bodies(0);
    done.get();
  }

 private:
  void serve(int core, const std::stop_token& stop) {
    benchmarks::bind_to(core);
    while (true) {
      std::packaged_task<void()> task;
      {
        std::unique_lock lock(mutex_);
        if (!some_.wait(lock, stop, [this] { return !tasks_.empty(); })) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable_any some_;
  mutable std::deque<std::packaged_task<void()>> tasks_;
  std::jthread worker_;
};

/// Both meet at a barrier before the bodies and after them.
class Barrier {
 public:
  explicit Barrier(int core) : worker_([this, core] { serve(core); }) {}
  ~Barrier() {
    bodies_ = nullptr;
    barrier_.arrive_and_wait();
  }

  void operator()(const Bodies& bodies) const {
    bodies_ = &bodies;
    barrier_.arrive_and_wait();
    bodies(0);
    barrier_.arrive_and_wait();
  }

 private:
  void serve(int core) {
    benchmarks::bind_to(core);
    while (true) {
      barrier_.arrive_and_wait();
      if (bodies_ == nullptr) return;
      (*bodies_)(1);
      barrier_.arrive_and_wait();
    }
  }

  mutable const Bodies* bodies_ = nullptr;
  mutable std::barrier<> barrier_{2};
  std::jthread worker_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  const std::string contender = slice.contender() == "default" ? "atomic_wait" : slice.contender();
  if (contender == "atomic_wait") return benchmarks::run_dispatch(slice, AtomicWait(slice.core(1)));
  if (contender == "condition_variable") return benchmarks::run_dispatch(slice, TaskQueue(slice.core(1)));
  if (contender == "barrier") return benchmarks::run_dispatch(slice, Barrier(slice.core(1)));
  if (contender == "async") {
    return benchmarks::run_dispatch(slice,
                                    [](const Bodies& bodies) {
                                      std::future<void> done = std::async(std::launch::async, [&bodies] { bodies(1); });
                                      bodies(0);
                                      done.get();
                                    },
                                    {.pin_caller = false});
  }
  if (contender == "thread") {
    return benchmarks::run_dispatch(slice,
                                    [](const Bodies& bodies) {
                                      const std::jthread other([&bodies] { bodies(1); });
                                      bodies(0);
                                    },
                                    {.pin_caller = false});
  }
  slice.fault("no contender " + contender);
}

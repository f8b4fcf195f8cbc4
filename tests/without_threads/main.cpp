// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program in which threads cannot be started after the first few: shards that wait for each other are then an error
// on all of them and not a wait for ever. A loader loads with as many threads as there are, and full buckets run on the
// thread that fills them.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include <dlfcn.h>
#include <pthread.h>

#include <fanout/collective/host_communicator.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/data.hpp>
#include <fanout/fanout.hpp>

namespace {
std::atomic<int> left{0};
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*enter)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return left-- > 0 ? create(thread, attributes, enter, argument) : EAGAIN;
}

int main() {
  for (const int threads : {0, 1}) {
    left = threads;
    const fanout::Loader loader{9, [](std::span<const std::size_t> samples) { return samples[0]; }, {.workers = 3}};
    std::size_t sum = 0;
    for (const std::size_t batch : loader.epoch(0)) sum = 10 * sum + batch;
    if (sum != 12'345'678) {
      std::printf("a loader with %d threads: %zu\n", threads, sum);
      return 1;
    }
  }
  {
    left = 0;
    fanout::backend::HostRendezvous rendezvous(1);
    fanout::backend::HostCommunicator alone(rendezvous, 0);
    fanout::Tensor<double, 1> array(100);
    array[7] = 5;
    auto buckets = alone.buckets({.first = 8, .others = 8});
    buckets.all_reduce_async(array);
    if (!buckets.ready() || array[7] != 5) {
      std::printf("buckets without a thread: %g\n", array[7]);
      return 1;
    }
  }
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, int) { ctx.communicator().barrier(); },
                                    fanout::host_devices(5)};
  for (int threads = 0; threads < 4; ++threads) {
    for (const bool asynchronous : {false, true}) {
      left = threads == 3 ? 100 : 1;
      std::string text;
      try {
        asynchronous ? model.async(fanout::on_all(), 1).get() : model(fanout::on_all(), 1);
      } catch (const fanout::ReplicaError& error) {
        text = error.what();
      }
      const bool said = text.find("failed on 5 of 5") != std::string::npos &&
                        text.find("no thread could be started") != std::string::npos;
      // The workers' threads stay, so that there are enough by the third time.
      if (text.empty() ? threads < 1 : !said) {
        std::printf("with %d threads: %s\n", threads, text.c_str());
        return 1;
      }
    }
  }
  return 0;
}

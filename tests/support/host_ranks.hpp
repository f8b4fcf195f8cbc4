// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <fanout/collective/host_rendezvous.hpp>

namespace fanout_test {

/// Calls `f(communicator)` on one thread for each rank of a rendezvous. Exceptions are dropped.
template <class C, class F>
void run_ranks(std::size_t ranks, const F& f) {
  fanout::backend::HostRendezvous rendezvous(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&rendezvous, &f, rank] {
      try {
        C communicator(rendezvous, rank);
        f(communicator);
      } catch (...) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// What each rank throws, as an E; the text of anything else after a mark.
template <class E, class C, class F>
std::vector<std::string> texts_of(std::size_t ranks, const F& f) {
  std::vector<std::string> texts(ranks);
  run_ranks<C>(ranks, [&](C& communicator) {
    const std::size_t rank = communicator.rank();
    try {
      f(communicator);
    } catch (const E& error) {
      texts[rank] = error.what();
      throw;
    } catch (const std::exception& other) {
      texts[rank] = std::string("another: ") + other.what();
      throw;
    }
  });
  return texts;
}

}  // namespace fanout_test

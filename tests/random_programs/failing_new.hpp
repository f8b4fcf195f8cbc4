// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The program's own operator new (failing_new.cpp), which counts what lives and fails when it is told to.

#include <cstddef>

namespace random_programs {

/// The k-th allocation from now on fails, of all threads' that are not spared; 0: none does.
void fail_allocation(std::size_t k) noexcept;
/// So do the next ones, `how_many` in all; 0: all of them.
void fail_allocations_from(std::size_t k, std::size_t how_many) noexcept;
/// Whether it has failed.
bool has_failed() noexcept;
/// How many allocations live.
long live_allocations() noexcept;

/// While it lives, no allocation of this thread fails or counts as one that could: those of the test itself.
class Spared {
 public:
  Spared() noexcept;
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
  ~Spared();
};

/// The other way round, inside of Spared.
class MayFail {
 public:
  MayFail() noexcept;
  MayFail(const MayFail&) = delete;
  MayFail& operator=(const MayFail&) = delete;
  ~MayFail();

 private:
  int before_;
};

}  // namespace random_programs

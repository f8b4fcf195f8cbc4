// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "failing_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace random_programs {

namespace {

std::atomic<long> live{0};
std::atomic<std::size_t> begun{0};  // allocations since fail_allocations_from()
std::atomic<std::size_t> first{0};  // of those that fail; 0: none does
std::atomic<std::size_t> most{1};   // that fail
std::atomic<bool> failed{false};
thread_local int spared = 0;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (spared == 0 && first.load(std::memory_order_relaxed) != 0) {
    const std::size_t number = begun.fetch_add(1) + 1;
    if (number >= first && number - first < most) {
      failed = true;
      return nullptr;
    }
  }
  void* const result = alignment <= alignof(std::max_align_t)
                           ? std::malloc(bytes == 0 ? 1 : bytes)
                           : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (result != nullptr) ++live;
  return result;
}

void release(void* old) noexcept {
  if (old != nullptr) --live;
  std::free(old);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const result = allocate(bytes, alignment)) return result;
  throw std::bad_alloc();
}

}  // namespace

void fail_allocation(std::size_t k) noexcept { fail_allocations_from(k, 1); }
void fail_allocations_from(std::size_t k, std::size_t how_many) noexcept {
  failed = false;
  first = 0;
  begun = 0;
  most = how_many == 0 ? std::numeric_limits<std::size_t>::max() : how_many;
  first = k;
}
bool has_failed() noexcept { return failed; }
long live_allocations() noexcept { return live; }

Spared::Spared() noexcept { ++spared; }
Spared::~Spared() { --spared; }
MayFail::MayFail() noexcept : before_(std::exchange(spared, 0)) {}
MayFail::~MayFail() { spared = before_; }

}  // namespace random_programs

using random_programs::allocate;
using random_programs::allocate_or_throw;
using random_programs::release;

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* old) noexcept { release(old); }
void operator delete(void* old, std::size_t) noexcept { release(old); }
void operator delete(void* old, std::align_val_t) noexcept { release(old); }
void operator delete(void* old, std::size_t, std::align_val_t) noexcept { release(old); }
void operator delete(void* old, const std::nothrow_t&) noexcept { release(old); }
void operator delete(void* old, std::align_val_t, const std::nothrow_t&) noexcept { release(old); }

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "failing_new.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace random_programs {

namespace {

std::atomic<long> live{0};
std::atomic<long> left{0};  // allocations until one fails; below: none does
std::atomic<bool> failed{false};
thread_local int spared = 0;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (spared == 0 && left.load(std::memory_order_relaxed) > 0 && left.fetch_sub(1) == 1) {
    failed = true;
    return nullptr;
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

void fail_allocation(std::size_t k) noexcept {
  failed = false;
  left = static_cast<long>(k);
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

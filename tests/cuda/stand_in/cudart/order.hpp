// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ThreadSanitizer is to see. The stand-in keeps its books under one mutex, which would order everything before
// everything and so hide the races that it is here to show. Therefore all bookkeeping is Quiet, and where CUDA orders
// two things, an Order says so.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define FANOUT_STAND_IN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FANOUT_STAND_IN_TSAN 1
#endif
#endif

#ifdef FANOUT_STAND_IN_TSAN
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace stand_in {

/// While it lives, this thread's memory accesses and locks are invisible to ThreadSanitizer. May be nested.
class Quiet {
 public:
  Quiet() { begin(); }
  ~Quiet() { end(); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  static void begin() {
#ifdef FANOUT_STAND_IN_TSAN
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  static void end() {
#ifdef FANOUT_STAND_IN_TSAN
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
#endif
  }
};

/// Inside exactly one Quiet: what follows is seen again.
class Loud {
 public:
  Loud() { Quiet::end(); }
  ~Loud() { Quiet::begin(); }
  Loud(const Loud&) = delete;
  Loud& operator=(const Loud&) = delete;
};

/// What happened before `release` in one thread has happened before what follows `acquire` in another. Both are called
/// inside exactly one Quiet.
class Order {
 public:
  void release() {
#ifdef FANOUT_STAND_IN_TSAN
    const Loud loud;
    __tsan_release(this);
#endif
  }
  void acquire() {
#ifdef FANOUT_STAND_IN_TSAN
    const Loud loud;
    __tsan_acquire(this);
#endif
  }

 private:
  [[maybe_unused]] char address_ = 0;
};

}  // namespace stand_in

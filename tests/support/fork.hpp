// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>

#include <sys/wait.h>
#include <unistd.h>

namespace fanout_test {

#if defined(__SANITIZE_THREAD__)
#define FANOUT_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FANOUT_TEST_THREAD_SANITIZER 1
#endif
#endif

/// ThreadSanitizer ends a child of a process with several threads as soon as it starts a thread.
#if defined(FANOUT_TEST_THREAD_SANITIZER)
inline constexpr bool can_fork = false;
#else
inline constexpr bool can_fork = true;
#endif
inline constexpr const char* cannot_fork = "ThreadSanitizer does not know the child of a process with several threads";

/// AddressSanitizer's allocator (of g++ 12 at least) has its locks in the child as they were in the parent: a child
/// waits for ever if another thread was allocating at the fork. The system's own allocator lets go of them.
#if defined(__SANITIZE_ADDRESS__)
#define FANOUT_TEST_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FANOUT_TEST_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(FANOUT_TEST_ADDRESS_SANITIZER)
inline constexpr bool can_fork_while_allocating = false;
#else
inline constexpr bool can_fork_while_allocating = true;
#endif

inline constexpr int threw = 98;

/// Waits for a child; its exit code, or 1000 and the signal that ended it.
inline int exit_code_of(pid_t child) {
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Ends the child of a fork with what `f()` returns, or with `threw`. It cannot hang for ever.
template <class F>
[[noreturn]] void child_ends_with(const F& f) {
  ::alarm(60);
  int code = threw;
  try {
    code = f();
  } catch (...) {  // reported by the exit code
  }
  ::_exit(code);
}

/// Runs `f` in a child of fork and returns what it returned (0 to 97), or `threw`.
template <class F>
int in_child(const F& f) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) child_ends_with(f);
  return exit_code_of(child);
}

}  // namespace fanout_test

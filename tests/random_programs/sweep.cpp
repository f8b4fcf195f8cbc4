// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sweep.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

#include <unistd.h>

#include <fanout/fanout.hpp>

#include "failing_new.hpp"

namespace random_programs {

namespace {

/// Whether it tells of nothing but memory that ran out.
bool tells_of_memory(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const fanout::OutOfMemory&) {
    return true;
  } catch (const fanout::ReplicaError& error) {
    return std::all_of(error.failures().begin(), error.failures().end(),
                       [](const fanout::Failure& failure) { return tells_of_memory(failure.exception); });
  } catch (...) {
    return false;
  }
}

/// A thread may still be about to drop what it had of a call, so this waits for a moment.
long live_after(long before) {
  for (int i = 0; i < 500; ++i) {
    fanout::empty_host_cache();
    if (live_allocations() == before) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return live_allocations();
}

char running[300];

void tell_what_runs(int signal) {
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  std::signal(SIGABRT, SIG_DFL);
  std::signal(signal, SIG_DFL);
  std::raise(signal == SIGALRM ? SIGABRT : signal);
}

}  // namespace

Running::Running(const std::string& what) {
  std::snprintf(running, sizeof running, "\nHANGS OR CRASHES: %s\n", what.c_str());
  for (const int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, tell_what_runs);
  ::alarm(100);
}
Running::~Running() { ::alarm(0); }

std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

Sweep fail_each_allocation(const std::function<void()>& prepare, const std::function<void()>& call,
                           const std::function<std::string()>& works_again) {
  const Spared spared;
  for (Sweep sweep;; ++sweep.failed) {
    const std::string which = "when allocation " + std::to_string(sweep.failed + 1) + " failed: ";
    prepare();
    fanout::empty_host_cache();
    const long before = live_allocations();
    std::exception_ptr thrown;
    fail_allocation(sweep.failed + 1);
    try {
      const MayFail may_fail;
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
    const bool failed = has_failed();
    fail_allocation(0);
    if (!failed && thrown == nullptr) return sweep;
    if (thrown != nullptr && !tells_of_memory(thrown)) {
      sweep.wrong = which + message_of(thrown);
      return sweep;
    }
    thrown = nullptr;
    prepare();
    if (const long more = live_after(before) - before; more != 0) {
      sweep.wrong = which + std::to_string(more) + " allocations more live than before";
      return sweep;
    }
    if (const std::string wrong = works_again(); !wrong.empty()) {
      sweep.wrong = which + "the next call: " + wrong;
      return sweep;
    }
  }
}

}  // namespace random_programs

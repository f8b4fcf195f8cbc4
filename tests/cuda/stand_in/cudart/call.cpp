// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace stand_in {
namespace {

// A fork waits for the books, so that the child finds them unlocked.
void before_fork() {
  const Quiet quiet;
  state().mutex.lock();
}
void after_fork_in_parent() {
  const Quiet quiet;
  state().mutex.unlock();
}
void after_fork_in_child() {
  const Quiet quiet;
  state().forked = state().touched;
  state().mutex.unlock();
}

}  // namespace

State& state() {
  static State* const all = [] {
    auto* const made = new State;
    read_environment(*made);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return made;
  }();
  return *all;
}

ThreadState& this_thread() {
  static thread_local ThreadState mine{};
  return mine;
}

void misuse(const char* call, const std::string& what) { state().misuse.push_back(std::string(call) + ": " + what); }

std::string text(const void* pointer) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%p", pointer);
  return buffer;
}

std::string device_text(int device) { return "device " + std::to_string(device); }

Call::Call(const char* called, unsigned needs) : name(called), needs_(needs) {
  auto& all = state();
  auto& mine = this_thread();
  if (all.forked) {
    refused_ = true;
    wanted_ = cudaErrorInitializationError;
    return;
  }
  lock = std::unique_lock(all.mutex);
  if ((needs & only_asks) != 0) return;
  if ((needs & devices) != 0) all.touched = true;
  ++all.calls[name];
  if (mine.in_host_function) {
    misuse(name, "called in a function given to cudaLaunchHostFunc");
    refused_ = true;
    wanted_ = cudaErrorNotPermitted;
    return;
  }
  wanted_ = unready();
  if (wanted_ != 0) {
    refused_ = true;
    return;
  }
  if ((needs & unsafe) != 0 && invalidates_captures()) wanted_ = cudaErrorStreamCaptureUnsupported;
  for (auto failure = all.failures.begin(); failure != all.failures.end(); ++failure) {
    if (wanted_ != 0) break;
    if (!failure->function.empty() && failure->function != name) continue;
    if (failure->after-- > 0) continue;
    if (failure->poisons >= 0) {
      device_at(failure->poisons).poison = failure->code;
      all.failures.erase(failure);
      break;  // what the call says of it depends on whether it is for that device
    }
    wanted_ = failure->code;
    if (--failure->times <= 0) {
      all.failures.erase(failure);
    } else {
      failure->after = 0;
    }
    break;
  }
  refused_ = wanted_ != 0 && (needs & releasing) == 0;
  if (refused_) return;
  if ((needs & context) == context) {
    const int device = current_or_chosen();
    if (mine.depth == 0) {
      mine.stack[0] = static_cast<signed char>(device);
      mine.depth = 1;
      make_context(device);
    } else if (device_at(device).retained == 0) {
      misuse(name, "the current context, of " + device_text(device) + ", was released");
      refused_ = true;
      wanted_ = cudaErrorContextIsDestroyed;
      return;
    } else if (device_at(device).reset) {  // by another thread
      refused_ = true;
      wanted_ = cudaErrorContextIsDestroyed;
      return;
    }
    device_ = device;
    const int poison = device_at(device).poison;
    if (poison != 0 && (needs & releasing) == 0) {
      refused_ = true;
      wanted_ = poison;
    }
  }
}

int Call::unready() {
  const auto& all = state();
  if (all.unloading) return cudaErrorCudartUnloading;
  if ((needs_ & devices) == 0) return 0;
  if (all.no_driver) return cudaErrorInsufficientDriver;
  if (all.count == 0) return cudaErrorNoDevice;
  return 0;
}

int Call::finish(int result) {
  auto& mine = this_thread();
  if (wanted_ != 0) result = wanted_;
  if (!lock) return result;
  const int poison = device_ < 0 ? 0 : device_at(device_).poison;
  if (poison != 0) result = poison;
  if ((needs_ & (only_asks | driver)) == 0 && result != 0) {
    mine.last_error = result;
    mine.sticky_of = poison != 0 ? device_ + 1 : 0;
  }
  return result;
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaPeekAtLastError() {
  const Call entry(__func__, only_asks);
  if (state().no_driver) return cudaErrorInsufficientDriver;
  return static_cast<cudaError_t>(this_thread().last_error);
}

cudaError_t cudaGetLastError() {
  const Call entry(__func__, only_asks);
  if (state().no_driver) return cudaErrorInsufficientDriver;
  auto& mine = this_thread();
  const int result = mine.last_error;
  const bool sticks = mine.sticky_of > 0 && device_at(mine.sticky_of - 1).poison != 0;
  if (!sticks) mine.last_error = 0;
  return static_cast<cudaError_t>(result);
}

}  // extern "C"

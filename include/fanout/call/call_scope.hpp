// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>
#include <fanout/sync/clock.hpp>

#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// The scope of one call or update that the running code is inside of, with a pointer to the scope around it. It passes
/// from the calling thread to the threads that run the shards, so that a model can tell that it is called from inside
/// itself.
struct CallScope {
  const CallScope* caller = nullptr;
  const void* original = nullptr;  ///< the model that is being called or updated
  bool busy = false;               ///< it holds a replica exclusively
  bool updating = false;
  Clock::Time stop_at = Clock::never;  ///< its own deadline; those of outer scopes count too
  bool copied = false;                 ///< a copy for an asynchronous call, which may outlive the scope around it
  bool refreshing = false;             ///< it refreshes a replica from the original
};

/// The innermost scope of this thread, or null outside of all calls.
[[gnu::visibility("default")]] inline const CallScope*& current_call() noexcept {
  static thread_local const CallScope* scope = nullptr;
  return scope;
}

/// Makes a scope, or none, the innermost one of this thread while this lives.
class EnteredScope {
 public:
  explicit EnteredScope(const CallScope* scope) noexcept : before_(std::exchange(current_call(), scope)) {}
  explicit EnteredScope(const CallScope& scope) noexcept : EnteredScope(&scope) {}
  EnteredScope(const EnteredScope&) = delete;
  EnteredScope& operator=(const EnteredScope&) = delete;
  ~EnteredScope() { current_call() = before_; }

 private:
  const CallScope* before_;
};

/// True if a model is called or updated in this scope or in one around it. Some scopes have only a deadline.
inline bool is_inside_call(const CallScope* scope) noexcept {
  while (scope != nullptr && scope->original == nullptr) scope = scope->caller;
  return scope != nullptr;
}

/// The innermost scope, from this one outwards, that calls or updates this model; null if there is none.
inline const CallScope* find_original(const CallScope* scope, const void* original) noexcept {
  while (scope != nullptr && scope->original != original) scope = scope->caller;
  return scope;
}

/// The deadline of code that runs in this scope: that of the innermost scope that has one.
inline Clock::Time stop_time(const CallScope* scope) noexcept {
  while (scope != nullptr && scope->stop_at == Clock::never) scope = scope->caller;
  return scope == nullptr ? Clock::never : scope->stop_at;
}

/// True if this scope or one around it holds a replica of that model. Any replica counts: if two shards of one call
/// each waited for the other's replica, neither would end.
inline bool holds_replica(const CallScope* scope, const void* original) noexcept {
  while (scope != nullptr && !(scope->busy && scope->original == original)) scope = scope->caller;
  return scope != nullptr;
}

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include <fanout/base/annotate.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One link of the chain of calls that led to the code that runs now: a shard of a call, or an update. It passes from
/// the thread that calls to the threads that run its shards, so that a model can tell that it is called from inside
/// itself.
struct CallLink {
  const CallLink* caller = nullptr;
  const void* original = nullptr;  ///< the model that is being called or updated
  bool busy = false;               ///< it runs on a replica that it has for itself
  bool updating = false;
  Clock::Time stop_at = Clock::never;  ///< when it is to stop, if it is not only inside of what is to stop then
  bool copied = false;  ///< for an asynchronous call, which may go on when what it was made from inside of has ended
  bool refreshing = false;  ///< a replica is being made like the original again
};

/// The innermost link of this thread; null outside of every call.
FANOUT_EXPORT inline const CallLink*& current_link() noexcept {
  static thread_local const CallLink* link = nullptr;
  return link;
}

/// Makes a link the innermost one of this thread for as long as this lives.
class EnteredLink {
 public:
  explicit EnteredLink(const CallLink& link) noexcept : before_(detail::exchange(current_link(), &link)) {}
  EnteredLink(const EnteredLink&) = delete;
  EnteredLink& operator=(const EnteredLink&) = delete;
  ~EnteredLink() { current_link() = before_; }

 private:
  const CallLink* before_;
};

/// Whether something is called or updated at this link or outside of it. There are links that only say when to stop.
inline bool is_inside_call(const CallLink* link) noexcept {
  while (link != nullptr && link->original == nullptr) link = link->caller;
  return link != nullptr;
}

/// The innermost link from `link` outwards that calls or updates this model, or null.
inline const CallLink* find_original(const CallLink* link, const void* original) noexcept {
  while (link != nullptr && link->original != original) link = link->caller;
  return link;
}

/// When what runs at this link is to stop.
inline Clock::Time stop_time(const CallLink* link) noexcept {
  while (link != nullptr && link->stop_at == Clock::never) link = link->caller;
  return link == nullptr ? Clock::never : link->stop_at;
}

/// Whether this chain keeps a replica of that model busy. Any replica of it: if two shards of one call each waited for
/// the other's, neither would end.
inline bool keeps_busy(const CallLink* link, const void* original) noexcept {
  while (link != nullptr && !(link->busy && link->original == original)) link = link->caller;
  return link != nullptr;
}

}}}  // namespace fanout::v0::detail

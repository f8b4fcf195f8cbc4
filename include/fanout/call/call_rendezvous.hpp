// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/collective/process_rendezvous.hpp>
#include <fanout/fwd.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// True if a `forward` with this type of context calls `ctx.communicator()` in its code.
template <class Ctx>
inline Atomic<bool> shards_meet_in{false};

/// Sets it before main(), or when a library is loaded.
template <class Ctx>
inline const bool notes_meeting_in = (shards_meet_in<Ctx>.store(true, MemoryOrder::relaxed), true);

/// The rendezvous of the shards of one call. It is made when a shard first asks for it. Until then it only notes which
/// shards have ended, since no shard of this process may wait for them.
class CallRendezvous {
 public:
  /// The base class of what place() makes.
  class Place {
   public:
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    virtual ~Place() = default;
    /// A shard has ended. `why` is null, or the exception that ended it.
    virtual void leave(std::size_t shard, const std::exception_ptr& why) noexcept = 0;
    /// Why a collective between devices failed. CommunicatorAbandoned if only another shard's device failed, null if
    /// all went well. Call this when the shard's device has done its work.
    virtual std::exception_ptr failure(std::size_t /*shard*/) const noexcept { return nullptr; }
    /// The devices of all shards have done their work: what failure() returns must not change any more.
    virtual void settle() noexcept {}
  };

  /// Takes back a shard that no device has started, which the caller must run. Null if there is none.
  struct Tasks {
    ShardTask* (*take_back)(void* from) noexcept = nullptr;
    void* from = nullptr;
  };

  /// Tasks that `from.take_back()` takes back. Borrows `from`.
  template <class From>
  static Tasks tasks_of(From& from) noexcept {
    return {.take_back = [](void* untyped) noexcept { return static_cast<From*>(untyped)->take_back(); },
            .from = &from};
  }

  /// The devices of the set, their collectives, and the plan. Null `transport`: collectives go through host memory.
  /// `processes`: the rendezvous with other processes, or null. There the first shard of this process is `first_shard`.
  struct Way {
    const backend::CollectiveTransport* transport = nullptr;
    const DeviceId* devices = nullptr;
    const Plan* plan = nullptr;
    backend::ProcessRendezvous* processes = nullptr;
    std::size_t first_shard = 0;
  };

  /// `notes_ends`: true if shards may meet, so that their ends must be noted.
  CallRendezvous(std::size_t shards, bool notes_ends)
      : shards_(shards),
        notes_ends_(notes_ends),
        more_ended_(notes_ends && shards > 64 ? new Word[(shards + 63) / 64] : nullptr) {}
  CallRendezvous(const CallRendezvous&) = delete;
  CallRendezvous& operator=(const CallRendezvous&) = delete;
  ~CallRendezvous() {
    if (!notes_ends_) return;
    delete place_.load(MemoryOrder::acquire);
    delete[] more_ended_;
  }

  /// Must be called before any shard runs. Borrows the devices and the plan.
  void way_is(const Way& way) noexcept { way_ = way; }
  const Way& way() const noexcept { return way_; }

  /// Must be called before any shard runs.
  void tasks_are(const Tasks& tasks) noexcept { tasks_ = tasks; }
  ShardTask* take_back() const noexcept {
    return tasks_.take_back == nullptr ? nullptr : tasks_.take_back(tasks_.from);
  }

  /// True if the ends of shards are noted.
  bool notes_ends() const noexcept { return notes_ends_; }

  /// Notes that a shard has ended, with this exception if it is not null.
  void end(std::size_t shard, const std::exception_ptr& why) noexcept {
    if (!notes_ends_) return;
    // This writes the note and then reads the place. place() writes the place and then reads the notes. So one of the
    // two notices.
    Atomic<std::uint64_t>& ended = word(shard);
    if ((ended.load(MemoryOrder::relaxed) & bit(shard)) == 0) ended.fetch_add(bit(shard), MemoryOrder::seq_cst);
    if (Place* place = place_.load(MemoryOrder::seq_cst)) {
      place->leave(shard, why);
    } else if (way_.processes != nullptr) {  // shards of other processes may wait for it already
      way_.processes->leave(way_.first_shard + shard, why);
    }
  }

  /// Place::settle(), if there is a place.
  void settle() noexcept {
    if (Place* const place = known_place()) place->settle();
  }

  /// Place::failure(), or null without a place.
  std::exception_ptr failure(std::size_t shard) const noexcept {
    const Place* const place = known_place();
    return place == nullptr ? nullptr : place->failure(shard);
  }

  /// Returns the place of type P. The first call makes it: `P(*this, shards)`. Throws what that throws, and Error if
  /// the ends of shards are not noted.
  template <class P>
  P& place() {
    if (!notes_ends_) {
      throw Error(explain({.what = "a collective runs code that was loaded after its call had begun",
                           .advice = "load the code before the call"}));
    }
    Place* known = place_.load(MemoryOrder::acquire);
    if (known != nullptr) return static_cast<P&>(*known);
    auto* made = new P(*this, shards_);
    if (!place_.compare_exchange_strong(known, made, MemoryOrder::seq_cst)) {
      delete made;
      return static_cast<P&>(*known);
    }
    for (std::size_t i = 0; i < shards_; ++i) {
      if ((word(i).load(MemoryOrder::seq_cst) & bit(i)) != 0) made->leave(i, nullptr);
    }
    return *made;
  }

 private:
  struct Word {
    Atomic<std::uint64_t> bits{0};
  };

  Place* known_place() const noexcept { return notes_ends_ ? place_.load(MemoryOrder::acquire) : nullptr; }

  static std::uint64_t bit(std::size_t shard) noexcept { return std::uint64_t{1} << (shard % 64); }
  Atomic<std::uint64_t>& word(std::size_t shard) noexcept {
    return more_ended_ == nullptr ? ended_ : more_ended_[shard / 64].bits;
  }

  Atomic<Place*> place_{nullptr};
  Tasks tasks_;
  Way way_;
  std::size_t shards_;
  const bool notes_ends_;
  // One bit per shard: usually one word, without an allocation.
  Atomic<std::uint64_t> ended_{0};
  Word* more_ended_;
};

}}}  // namespace fanout::v0::detail

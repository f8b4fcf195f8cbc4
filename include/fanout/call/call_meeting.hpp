// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/annotate.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/fwd.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

FANOUT_EXPORT inline Atomic<bool> some_shards_meet{false};

/// Notes before main(), or when a library is loaded, that there is code in which shards wait for each other.
template <class Communicator>
inline const bool shards_meet_by = (some_shards_meet.store(true, MemoryOrder::relaxed), true);

/// Whether shards of a call may wait for each other anywhere in this program.
inline bool shards_may_meet() noexcept { return some_shards_meet.load(MemoryOrder::relaxed); }

/// Where the shards of one call meet that wait for each other: nothing until one of them asks for it, but a note of
/// those that have ended, since a shard that will not come must not be waited for.
class CallMeeting {
 public:
  /// What is made when it is asked for.
  struct Place {
    void (*leave)(Place&, std::size_t shard, const std::exception_ptr& why) noexcept;
    void (*destroy)(Place*) noexcept;
  };

  /// Gives back a shard that no device has started, for who asks to run it, or null.
  struct Tasks {
    ShardTask* (*take_back)(void* from) noexcept = nullptr;
    void* from = nullptr;
  };

  /// How the shards' devices pass arrays to each other, null for by way of the host; and these devices, by their
  /// positions in the set, which the plan names.
  struct Way {
    const backend::CollectiveOperations* operations = nullptr;
    const DeviceId* devices = nullptr;
    const Plan* plan = nullptr;
  };

  /// `notes_ends`: whether shards may meet, so that it is noted which have ended.
  explicit CallMeeting(std::size_t shards, bool notes_ends = true)
      : shards_(shards), notes_ends_(notes_ends), more_ended_(shards > 64 ? new Word[(shards + 63) / 64] : nullptr) {}
  CallMeeting(const CallMeeting&) = delete;
  CallMeeting& operator=(const CallMeeting&) = delete;
  ~CallMeeting() {
    if (Place* place = place_.load(MemoryOrder::acquire)) place->destroy(place);
    delete[] more_ended_;
  }

  /// Before any shard runs. Borrows the devices and the plan.
  void way_is(const Way& way) noexcept { way_ = way; }
  const Way& way() const noexcept { return way_; }

  void tasks_are(const Tasks& tasks) noexcept { tasks_ = tasks; }
  ShardTask* take_back() const noexcept {
    return tasks_.take_back == nullptr ? nullptr : tasks_.take_back(tasks_.from);
  }

  /// Whether it is noted which shards have ended.
  bool notes_ends() const noexcept { return notes_ends_; }

  /// A shard has ended, by this exception if there is one.
  void end(std::size_t shard, const std::exception_ptr& why) noexcept {
    if (!notes_ends_) return;
    // First the note and then the look at the place, and place() does it the other way round: one of them notices.
    Atomic<std::uint64_t>& ended = word(shard);
    if ((ended.load(MemoryOrder::relaxed) & bit(shard)) == 0) ended.fetch_add(bit(shard), MemoryOrder::seq_cst);
    if (Place* place = place_.load(MemoryOrder::seq_cst)) place->leave(*place, shard, why);
  }

  /// The place of type P, which the first one makes: `P(*this, shards)`. Throws what that throws, and Error if it was
  /// not noted which shards have ended.
  template <class P>
  P& place() {
    if (!notes_ends_) {
      throw Error(explain({.what = "shards meet by code that was loaded when their call had begun",
                           .advice = "load it before the call"}));
    }
    Place* known = place_.load(MemoryOrder::acquire);
    if (known != nullptr) return static_cast<P&>(*known);
    auto* made = new P(*this, shards_);
    if (!place_.compare_exchange_strong(known, made, MemoryOrder::seq_cst)) {
      delete made;
      return static_cast<P&>(*known);
    }
    for (std::size_t i = 0; i < shards_; ++i) {
      if ((word(i).load(MemoryOrder::seq_cst) & bit(i)) != 0) made->leave(*made, i, nullptr);
    }
    return *made;
  }

 private:
  struct Word {
    Atomic<std::uint64_t> bits{0};
  };

  static std::uint64_t bit(std::size_t shard) noexcept { return std::uint64_t{1} << (shard % 64); }
  Atomic<std::uint64_t>& word(std::size_t shard) noexcept {
    return more_ended_ == nullptr ? ended_ : more_ended_[shard / 64].bits;
  }

  Atomic<Place*> place_{nullptr};
  Tasks tasks_;
  Way way_;
  std::size_t shards_;
  const bool notes_ends_;
  // A bit for each shard, so that the usual case is one word and needs no memory.
  Atomic<std::uint64_t> ended_{0};
  Word* more_ended_;
};

}}}  // namespace fanout::v0::detail

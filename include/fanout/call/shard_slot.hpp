// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/slot.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/scratch.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What one shard leaves besides its value: its exception, the memory that it claimed, and pending device work.
struct ShardRemains {
  using Times = CallTimes;
  using Count = std::uint32_t;  // of failures
  static constexpr std::size_t as_planned = ~std::size_t{0};

  // moved_to is read only in calls that note the ends of shards.
  // NOLINTNEXTLINE(*-member-init,modernize-use-equals-default)
  ShardRemains() noexcept {}

  Scratch scratch;
  backend::Completion completion;  // declared after scratch, so destroyed (waited for) before it
  std::exception_ptr failure;
  std::size_t moved_to;  // the device that runs it, or as_planned; set by runs_as_planned()
  bool failed_in_forward = false;
  bool released = false;  // it failed only because it waited for a shard that had left
  bool told_late = false;
  bool results_do_not_fit = false;  // into the memory that gathers them, which is not the device's
  Lateness lateness;

  void runs_as_planned() noexcept { moved_to = as_planned; }

  /// True if it has thrown an E.
  template <class E>
  bool failed_with() const noexcept {
    if (failure == nullptr) return false;
    try {
      std::rethrow_exception(failure);
    } catch (const E&) {
      return true;
    } catch (...) {
      return false;
    }
  }
};

/// What one shard returned. Stores nothing for void.
template <class R>
class ShardValue : public Slot<R> {};

template <>
class ShardValue<void> {
 public:
  template <class Make, class... With>
  void fill(const Make& make, With&... with) {
    make(with...);
  }
  void clear() noexcept {}
};

/// Where one shard leaves what it returned or threw, and the memory that it claimed.
template <class R>
class ShardSlot : public ShardValue<R>, public ShardRemains {
 public:
  ShardSlot() noexcept {}  // NOLINT(modernize-use-equals-default): that would set the bytes to zero
  ShardSlot(const ShardSlot&) = delete;
  ShardSlot& operator=(const ShardSlot&) = delete;
  ~ShardSlot() { this->clear(); }  // before the memory that the value may refer to
};

}}}  // namespace fanout::v0::detail

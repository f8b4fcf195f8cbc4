// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/measure/call_clock.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One shard of a recorded call.
struct ShardRecord {
  DeviceId device;
  RowRange rows;
  ShardTimes times;
};

/// One recorded call. Its times are absolute: nanoseconds of its clock.
struct CallRecord {
  std::int64_t began = 0;
  std::int64_t planned = 0;
  std::int64_t gather = 0;  ///< gathering begins
  std::int64_t ended = 0;
  std::uint64_t id = 0;
  std::uint64_t outer = 0;
  std::uint32_t outer_shard = 0;
  std::uint32_t number = 0;
  std::uint32_t thread = 0;
  std::uint32_t gatherer = 0;
  CallTimes::Step step;
  std::uint32_t model = 0;  ///< index of CallRecords::models()
  std::uint32_t shards = 0;
  bool asynchronous = false;
  bool own_clock = false;
  bool failed = false;
};

/// Records the calls that end, at most a number of them. The memory grows in chunks. Nothing is formatted. Only one
/// thread at a time calls it: see ProcessObserver.
class CallRecords final : public CallObserver {
 public:
  /// If there are more calls, drops the latest, or otherwise the earliest.
  CallRecords(std::size_t most, bool keeps_first)
      : CallObserver(&make_call_clock), most_(most), keeps_first_(keeps_first) {}

  FANOUT_INLINE void ended(const CallTimes& call) noexcept override;

  /// In the order in which they ended.
  const std::deque<CallRecord>& calls() const noexcept { return calls_; }
  /// Of all calls, in their order.
  const std::deque<ShardRecord>& shards() const noexcept { return shards_; }
  /// The names of the models' types, as the compiler spells them.
  const std::vector<std::string>& models() const noexcept { return models_; }
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  // A copy: the library that has the name may be closed before it is written.
  FANOUT_INLINE std::uint32_t name(std::string_view model);

  void drop_earliest() noexcept {
    for (std::uint32_t i = 0; i < calls_.front().shards; ++i) shards_.pop_front();
    calls_.pop_front();
    ++dropped_;
  }

  std::size_t most_;
  bool keeps_first_;
  std::deque<CallRecord> calls_;
  std::deque<ShardRecord> shards_;
  std::vector<std::string> models_;
  std::uint64_t dropped_ = 0;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/call_records.ipp>
#endif

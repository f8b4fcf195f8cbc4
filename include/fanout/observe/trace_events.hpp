// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/version.hpp>
#include <fanout/observe/call_records.hpp>
#include <fanout/observe/lanes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A string of JSON, in quotes.
FANOUT_INLINE std::string json_string(std::string_view text);

/// The text of a trace in Chrome's Trace Event Format: one object, with an event in each line. Reads back in any JSON
/// parser. Times are microseconds after `start`, with three digits after the point.
class TraceEvents {
 public:
  /// `process` becomes the `pid` of all events. `start` is a time of the process's clock, `unix_start` the same as
  /// nanoseconds since 1970.
  FANOUT_INLINE TraceEvents(const CallRecords& records, int process, std::int64_t start, std::int64_t unix_start);

  const std::string& text() const noexcept { return text_; }

 private:
  using Time = std::int64_t;

  static std::string version() {
    return std::to_string(FANOUT_VERSION / 10000) + '.' + std::to_string(FANOUT_VERSION / 100 % 100) + '.' +
           std::to_string(FANOUT_VERSION % 100);
  }

  /// Clocks of devices count from anywhere, so the first call by one is at 0.
  FANOUT_INLINE static Time first_of_own_clocks(const CallRecords& records);

  Time after_start(const CallRecord& call, Time time) const { return time - (call.own_clock ? own_start_ : start_); }

  FANOUT_INLINE std::vector<LaneSlice> slices_of(const CallRecords& records) const;

  // Lanes of devices come first, and then the threads, by their numbers.
  static std::string tid_of_lane(std::size_t lane) { return std::to_string(lane + 1); }
  std::string tid_of_thread(std::uint32_t thread) const { return std::to_string(lane_count_ + thread); }

  FANOUT_INLINE void add_lanes(const Lanes& lanes);

  void add_lane(std::size_t tid, const std::string& name) {
    add_metadata("thread_name", tid, R"("name": )" + json_string(name));
    add_metadata("thread_sort_index", tid, R"("sort_index": )" + std::to_string(tid));
  }

  void add_metadata(const char* kind, std::size_t tid, const std::string& args) {
    add(std::string(R"("ph": "M", "name": ")") + kind + R"(", "tid": )" + std::to_string(tid) + R"(, "args": {)" +
        args + '}');
  }

  /// The type of the model, or the step of a pipeline.
  FANOUT_INLINE std::string name_of(const CallRecord& call) const;
  FANOUT_INLINE static std::string args_of(const CallTimes::Step& step);

  FANOUT_INLINE void add_call(const CallRecord& call, std::size_t first, const LaneSlice* slices);

  FANOUT_INLINE void add_shard(const CallRecord& call, const std::string& model, const ShardRecord& shard,
                               const LaneSlice& slice);

  /// An arrow from the shard whose `forward` made a call to that call.
  FANOUT_INLINE void add_nesting(const std::vector<LaneSlice>& slices);

  /// Stages without duration are left out.
  FANOUT_INLINE void add_slice(std::string_view name, const char* category, const std::string& tid, Time began,
                               Time ended, const std::string& args = {});

  void add_arrow(const std::string& from, Time leaves, const std::string& to, Time arrives) {
    const std::string both = R"("name": "starts", "cat": "flow", "id": )" + unique(++arrows_) + R"(, "tid": )";
    add(R"("ph": "s", )" + both + from + R"(, "ts": )" + micros(std::min(leaves, arrives)));
    add(R"("ph": "f", "bp": "e", )" + both + to + R"(, "ts": )" + micros(arrives));
  }

  /// Ids of several processes differ, since their files may be merged. Viewers read numbers, as doubles.
  std::string unique(std::uint64_t id) const { return std::to_string(process_ * (std::uint64_t{1} << 30U) + id); }

  void add(const std::string& event) {
    text_ += (text_.back() == '[' ? "\n{\"pid\": " : ",\n{\"pid\": ") + pid_ + ", " + event + '}';
  }

  FANOUT_INLINE static std::string micros(Time nanoseconds);

  const CallRecords& records_;
  const std::uint64_t process_;
  const std::string pid_;
  const Time start_;
  const Time own_start_;
  std::size_t lane_count_ = 0;
  std::uint64_t arrows_ = 0;
  std::string text_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/trace_events.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/trace_events.hpp>

#include <map>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

std::string json_string(std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string all = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20) {
      all += {'\\', 'u', '0', '0', digits[code >> 4U], digits[code & 15U]};
    } else {
      if (letter == '"' || letter == '\\') all += '\\';
      all += letter;
    }
  }
  return all + '"';
}

TraceEvents::TraceEvents(const CallRecords& records, int process, std::int64_t start, std::int64_t unix_start)
    : records_(records),
      process_(static_cast<std::uint64_t>(process)),
      pid_(std::to_string(process)),
      start_(start),
      own_start_(first_of_own_clocks(records)) {
  text_ = R"({"displayTimeUnit": "ns", "otherData": {"fanout": ")" + version() + R"(", "calls": )" +
          std::to_string(records.calls().size()) + R"(, "dropped_calls": )" + std::to_string(records.dropped()) +
          R"(, "unix_nanoseconds": ")" + std::to_string(unix_start) + R"("}, "traceEvents": [)";
  add_metadata("process_name", 0, R"("name": "process )" + pid_ + '"');
  std::vector<LaneSlice> slices = slices_of(records);
  const Lanes lanes(slices);
  add_lanes(lanes);
  std::size_t first = 0;
  for (const CallRecord& call : records.calls()) {
    add_call(call, first, slices.data() + first);
    first += call.shards;
  }
  add_nesting(slices);
  text_ += "\n]}\n";
}

TraceEvents::Time TraceEvents::first_of_own_clocks(const CallRecords& records) {
  Time first = INT64_MAX;
  for (const CallRecord& call : records.calls()) {
    if (call.own_clock) first = std::min(first, call.began);
  }
  return first;
}

std::vector<LaneSlice> TraceEvents::slices_of(const CallRecords& records) const {
  std::vector<LaneSlice> slices;
  slices.reserve(records.shards().size());
  auto shard = records.shards().begin();
  for (const CallRecord& call : records.calls()) {
    const Time began = after_start(call, call.began);
    for (std::uint32_t i = 0; i < call.shards; ++i, ++shard) {
      slices.push_back({.device = shard->device,
                        .thread = shard->times.thread,
                        .began = began + shard->times.began,
                        .ended = began + shard->times.ended});
    }
  }
  return slices;
}

void TraceEvents::add_lanes(const Lanes& lanes) {
  lane_count_ = lanes.all().size();
  for (std::size_t i = 0; i < lane_count_; ++i) {
    const Lane& lane = lanes.all()[i];
    std::string name = to_string(lane.device);
    if (lane.index != 0) name += " (" + std::to_string(lane.index + 1) + ')';
    add_lane(i + 1, name);
  }
  std::vector<std::uint32_t> threads;
  for (const CallRecord& call : records_.calls()) {
    threads.push_back(call.thread);
    if (call.gatherer != 0) threads.push_back(call.gatherer);
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  for (const std::uint32_t thread : threads) {
    add_lane(lane_count_ + thread, "calls of thread " + std::to_string(thread));
  }
}

std::string TraceEvents::name_of(const CallRecord& call) const {
  if (call.step.pass == nullptr) return records_.models()[call.model];
  return call.step.pass + (" of stage " + std::to_string(call.step.stage));
}

std::string TraceEvents::args_of(const CallTimes::Step& step) {
  if (step.pass == nullptr) return "";
  return R"(, "pass": ")" + std::string(step.pass) + R"(", "stage": )" + std::to_string(step.stage) +
         R"(, "micro_batch": )" + std::to_string(step.micro_batch);
}

void TraceEvents::add_call(const CallRecord& call, std::size_t first, const LaneSlice* slices) {
  const std::string tid = tid_of_thread(call.thread);
  const std::string model = name_of(call);
  const Time began = after_start(call, call.began);
  const Time planned = after_start(call, call.planned);
  const Time ended = after_start(call, call.ended);
  const std::string args = R"({"call": )" + std::to_string(call.id) + R"(, "number": )" + std::to_string(call.number) +
                           args_of(call.step) + (call.failed ? R"(, "failed": true})" : "}");
  if (call.asynchronous) {
    // The thread only starts it. The call itself goes on beside the thread's other calls.
    add_slice(model, "call", tid, began, planned, args);
    const std::string id = R"(, "cat": "call", "id": )" + unique(call.id);
    add(R"("ph": "b", "name": )" + json_string(model) + id + R"(, "tid": )" + tid + R"(, "ts": )" + micros(began) +
        R"(, "args": )" + args);
    add(R"("ph": "e", "name": )" + json_string(model) + id + R"(, "tid": )" + tid + R"(, "ts": )" + micros(ended));
  } else {
    add_slice(model, "call", tid, began, ended, args);
    add_slice("plan", "stage", tid, began, planned);
  }
  if (call.gatherer != 0) {
    add_slice("gather", "stage", tid_of_thread(call.gatherer), after_start(call, call.gather), ended);
  }
  // An arrow binds to a slice that lasts at its time. The start of an asynchronous call has ended when its plan is
  // made.
  const Time leaves = call.asynchronous ? began : planned;
  for (std::uint32_t i = 0; i < call.shards; ++i) {
    const ShardRecord& shard = records_.shards()[first + i];
    if (shard.times.thread == 0) continue;  // it did not begin
    add_shard(call, model, shard, slices[i]);
    add_arrow(tid, leaves, tid_of_lane(slices[i].lane), slices[i].began);
  }
}

void TraceEvents::add_shard(const CallRecord& call, const std::string& model, const ShardRecord& shard,
                            const LaneSlice& slice) {
  const ShardTimes& times = shard.times;
  const Time began = after_start(call, call.began);
  const std::string tid = tid_of_lane(slice.lane);
  std::string args = R"({"call": )" + std::to_string(call.id) + R"(, "first_row": )" +
                     std::to_string(shard.rows.first) + R"(, "rows": )" + std::to_string(shard.rows.size()) +
                     R"(, "thread": )" + std::to_string(times.thread) + args_of(call.step);
  if (times.bytes_in != 0) args += R"(, "bytes_in": )" + std::to_string(times.bytes_in);
  if (times.bytes_out != 0) args += R"(, "bytes_out": )" + std::to_string(times.bytes_out);
  if (times.failed) args += R"(, "failed": true)";
  add_slice(model, "shard", tid, slice.began, slice.ended, args + '}');
  const bool ran = times.forward != 0 || !times.failed;
  add_slice("scatter", "stage", tid, slice.began, ran ? began + times.forward : slice.ended);
  if (!ran) return;
  add_slice("forward", "stage", tid, began + times.forward, began + times.returned);
  add_slice("wait", "stage", tid, began + times.returned, slice.ended);
}

void TraceEvents::add_nesting(const std::vector<LaneSlice>& slices) {
  std::map<std::uint64_t, std::pair<const CallRecord*, std::size_t>> calls;  // with their first shards
  std::size_t first = 0;
  for (const CallRecord& call : records_.calls()) {
    calls[call.id] = {&call, first};
    first += call.shards;
  }
  for (const CallRecord& call : records_.calls()) {
    const auto outer = calls.find(call.outer);
    if (outer == calls.end() || call.outer_shard >= outer->second.first->shards) continue;
    const LaneSlice& from = slices[outer->second.second + call.outer_shard];
    const Time began = after_start(call, call.began);
    add_arrow(tid_of_lane(from.lane), std::clamp(began, from.began, from.ended), tid_of_thread(call.thread), began);
  }
}

void TraceEvents::add_slice(std::string_view name, const char* category, const std::string& tid, Time began, Time ended,
                            const std::string& args) {
  if (args.empty() && ended <= began) return;
  add(R"("ph": "X", "name": )" + json_string(name) + R"(, "cat": ")" + category + R"(", "tid": )" + tid +
      R"(, "ts": )" + micros(began) + R"(, "dur": )" + micros(ended - began) +
      (args.empty() ? "" : R"(, "args": )" + args));
}

std::string TraceEvents::micros(Time nanoseconds) {
  std::string text = nanoseconds < 0 ? "-" : "";
  const auto all = nanoseconds < 0 ? -static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  const std::string part = std::to_string(all % 1000);
  return text + std::to_string(all / 1000) + '.' + std::string(3 - part.size(), '0') + part;
}

}}}  // namespace fanout::v0::detail

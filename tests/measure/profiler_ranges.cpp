// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/measure/profiler_ranges.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/observe.hpp>

namespace {

using fanout::detail::profiler_ranges;
using fanout::detail::ProfilerRange;
using fanout::detail::ProfilerRanges;

/// What a profiler is told, by thread: `+name number` and `-`.
struct Told {
  static inline std::mutex mutex;
  static inline std::map<std::thread::id, std::vector<std::string>> by_thread;

  static void note(const std::string& text) {
    const std::lock_guard noting(mutex);
    by_thread[std::this_thread::get_id()].push_back(text);
  }
};

void note_begin(std::string_view stage, std::string_view model, std::uint64_t number) noexcept {
  Told::note("+" + std::string(stage) + std::string(model) + " " + std::to_string(number));
}
void note_end() noexcept { Told::note("-"); }
constexpr ProfilerRanges told_ranges{.begin = &note_begin, .end = &note_end};

class ToldProfiler {
 public:
  ToldProfiler() : before_(profiler_ranges.load(fanout::detail::MemoryOrder::acquire)) {
    Told::by_thread.clear();
    profiler_ranges.store(&told_ranges, fanout::detail::MemoryOrder::release);
  }
  ToldProfiler(const ToldProfiler&) = delete;
  ToldProfiler& operator=(const ToldProfiler&) = delete;
  ~ToldProfiler() { profiler_ranges.store(before_, fanout::detail::MemoryOrder::release); }

 private:
  const ProfilerRanges* before_;
};

struct Halves {
  int forward(std::span<const int> rows) const {
    if (!rows.empty() && rows[0] < 0) throw std::runtime_error("negative");
    return static_cast<int>(rows.size());
  }
};

bool begins_with(const std::string& text, const std::string& front) { return text.rfind(front, 0) == 0; }

/// The ranges of each thread are closed in the end. Returns how many began whose names begin so.
int count_closed(const std::string& front) {
  int found = 0;
  for (const auto& [thread, texts] : Told::by_thread) {
    int open = 0;
    for (const std::string& text : texts) {
      open += text[0] == '+' ? 1 : -1;
      CHECK(open >= 0);
      found += begins_with(text, front) ? 1 : 0;
    }
    CHECK(open == 0);
  }
  return found;
}

}  // namespace

TEST_CASE("a measured call is a range on its thread, in which the shards' stages are ranges") {
  const ToldProfiler profiler;
  const fanout::ParallelModel model{Halves{}, fanout::host_devices(2), {.measure = true}};
  model(std::vector<int>(5));
  CHECK(count_closed("+call of ") == 1);
  CHECK(count_closed("+scatter to ") == 2);
  CHECK(count_closed("+forward of ") == 2);
  const std::vector<std::string>& own = Told::by_thread.at(std::this_thread::get_id());
  CHECK(begins_with(own.front(), "+call of "));
  CHECK(own.front().find("Halves") != std::string::npos);
  CHECK(own.back() == "-");
}

TEST_CASE("ranges are closed if forward throws, and after asynchronous calls") {
  const ToldProfiler profiler;
  const fanout::ParallelModel model{Halves{}, fanout::host_devices(2), {.measure = true}};
  CHECK_THROWS_AS(model(std::vector<int>{-1, 1, 1}), fanout::ReplicaError);
  model.async(std::vector<int>(4)).get();
  CHECK(count_closed("+call of ") == 1);
  CHECK(count_closed("+forward of ") == 4);
}

TEST_CASE("calls that nobody measures are no ranges") {
  const ToldProfiler profiler;
  const fanout::ParallelModel model{Halves{}, fanout::host_devices(2)};
  model(std::vector<int>(5));
  CHECK(Told::by_thread.empty());
}

TEST_CASE("a range ends the stage before, and without a profiler it does nothing") {
  ProfilerRange range;
  {
    const ToldProfiler profiler;
    range.begin("forward of ", "x", 7);
    range.begin("next ", "y", 8);
    range.end();
    range.end();
  }
  const std::vector<std::string>& own = Told::by_thread.at(std::this_thread::get_id());
  CHECK(own == std::vector<std::string>{"+forward of x 7", "-", "+next y 8", "-"});
  const ProfilerRanges* const before = profiler_ranges.exchange(nullptr, fanout::detail::MemoryOrder::acq_rel);
  range.begin("a", "b", 1);
  range.end();
  profiler_ranges.store(before, fanout::detail::MemoryOrder::release);
  CHECK(own.size() == 4);
}

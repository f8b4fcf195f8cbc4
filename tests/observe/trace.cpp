// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/observe/trace.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <locale>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

#include "device/clock_device.hpp"
#include "observe/python.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::trace;
using fanout::TraceOptions;
using fanout_test::beside;
using fanout_test::clock_devices;
using fanout_test::ClockDevice;
using fanout_test::message_of;
using fanout_test::python;
using fanout_test::says;
using fanout_test::TestFolder;
using fanout_test::text_of;

namespace {

using Rows = std::span<const int>;

int rows_of(Rows rows) {
  if (!rows.empty() && rows[0] < 0) throw std::runtime_error("negative");
  return static_cast<int>(rows.size());
}

struct Expected {
  int calls = 0, shards = 0, dropped = 0, nested = 0, processes = 1;
};

bool is_valid(const std::string& path, const Expected& expected) {
  std::string arguments = path;
  for (const int each : {expected.calls, expected.shards, expected.dropped, expected.nested, expected.processes}) {
    arguments += ' ' + std::to_string(each);
  }
  return python(beside(__FILE__, "check_trace.py"), arguments);
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// Takes 1000 ns a row, and leaves 500 ns to the device.
struct Steady {
  int forward(fanout::Context auto& ctx, Rows rows) const {
    ctx.device().time_of_device() += 1000 * static_cast<int>(rows.size());
    ctx.device().left() += 500;
    return 0;
  }
};

}  // namespace

TEST_CASE("trace returns what its function returns") {
  const TestFolder folder;
  const std::string path = folder / "run.json";
  CHECK(trace(path, [] { return 7; }) == 7);
  CHECK(*trace(path, [] { return std::make_unique<int>(8); }) == 8);
  int here = 0;
  static_assert(std::is_same_v<decltype(trace(path, [&here]() -> int& { return here; })), int&>);
  CHECK(&trace(path, [&here]() -> int& { return here; }) == &here);
  static_assert(std::is_void_v<decltype(trace(path, [] {}))>);
  trace({.path = path}, [&here] { here = 9; });
  CHECK(here == 9);
}

TEST_CASE("a trace has the calls of all models: in the thread, in others, nested, asynchronous and failed") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel inner{rows_of, host_devices(2)};
  const ParallelModel outer{[&inner](Rows rows) { return static_cast<int>(inner(rows).size()); }, host_devices(2)};
  inner(std::vector<int>(4));  // not traced
  const int result = trace(path, [&] {
    inner(std::vector<int>(4));
    outer(std::vector<int>(6));
    auto first = inner.async(std::vector<int>(8));
    auto second = inner.async(std::vector<int>(8));
    second.get();
    first.get();
    CHECK_THROWS_AS(inner(std::vector<int>{-1, 1}), fanout::ReplicaError);
    std::thread([&] {
      for (int i = 0; i < 10; ++i) inner(std::vector<int>(4));
    }).join();
    return 5;
  });
  CHECK(result == 5);
  inner(std::vector<int>(4));  // not traced
  // 1 + (1 + 2 nested) + 2 + 1 + 10 calls, each with two shards.
  CHECK(is_valid(path, {.calls = 17, .shards = 34, .nested = 2}));
  const std::string text = text_of(path);
  CHECK(count(text, "\"failed\": true") == 2);  // the call and its shard
  CHECK(count(text, "\"ph\": \"b\"") == 2);
  CHECK(count(text, "\"name\": \"calls of thread") >= 2);
  CHECK(count(text, "\"name\": \"host:0\"") == 1);
  CHECK(count(text, "\"name\": \"host:1\"") == 1);
}

TEST_CASE("calls at the same time on the same devices give a valid trace") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel inner{rows_of, host_devices(3)};
  const ParallelModel outer{[&inner](Rows rows) { return static_cast<int>(inner(rows).size()); }, host_devices(2)};
  trace(path, [&] {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) outer(std::vector<int>(6));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  CHECK(is_valid(path, {.calls = 450, .shards = 150 * 2 + 300 * 3, .nested = 300}));
}

TEST_CASE("the events of a call are exact, by the clocks of its devices") {
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel model{Steady{}, clock_devices(2)};
  ClockDevice::all_at(5'000'000);
  trace({.path = path, .process = 3}, [&] { model(std::vector<int>(5)); });
  const std::string text = text_of(path);
  const auto has = [&text](const std::string& event) {
    CAPTURE(event);
    CHECK(count(text, event) == 1);
  };
  has(R"({"pid": 3, "ph": "M", "name": "process_name", "tid": 0, "args": {"name": "process 3"}})");
  has(R"({"pid": 3, "ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "clock:0"}})");
  has(R"({"pid": 3, "ph": "M", "name": "thread_name", "tid": 2, "args": {"name": "clock:1"}})");
  has(R"("cat": "shard", "tid": 1, "ts": 0.000, "dur": 3.500, "args": {"call": )");
  has(R"("first_row": 0, "rows": 3, "thread": )");
  has(R"("cat": "shard", "tid": 2, "ts": 0.000, "dur": 2.500, "args": {"call": )");
  has(R"("first_row": 3, "rows": 2, "thread": )");
  has(R"("name": "forward", "cat": "stage", "tid": 1, "ts": 0.000, "dur": 3.000})");
  has(R"("name": "wait", "cat": "stage", "tid": 1, "ts": 3.000, "dur": 0.500})");
  has(R"("name": "forward", "cat": "stage", "tid": 2, "ts": 0.000, "dur": 2.000})");
  CHECK(count(text, "Steady\", \"cat\": \"call\"") == 1);
  CHECK(count(text, "\"name\": \"scatter\"") == 0);  // it took no time
}

TEST_CASE("at most so many calls are kept, and the file says how many were dropped") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel model{rows_of, host_devices(2)};
  const auto calls = [&model] {
    for (int i = 0; i < 10; ++i) model(std::vector<int>(static_cast<std::size_t>(10 + i)));
  };
  SUBCASE("the earliest are dropped") {
    trace({.path = path, .calls = 3}, calls);
    CHECK(is_valid(path, {.calls = 3, .shards = 6, .dropped = 7}));
    CHECK(count(text_of(path), "\"number\": 9") == 1);
    CHECK(count(text_of(path), "\"number\": 6}") == 0);
  }
  SUBCASE("the latest are dropped") {
    trace({.path = path, .calls = 3, .keep_first = true}, calls);
    CHECK(is_valid(path, {.calls = 3, .shards = 6, .dropped = 7}));
    CHECK(count(text_of(path), "\"number\": 0") == 1);
    CHECK(count(text_of(path), "\"number\": 3}") == 0);
  }
  SUBCASE("none is kept") {
    trace({.path = path, .calls = 0}, calls);
    CHECK(is_valid(path, {.dropped = 10}));
  }
  SUBCASE("all fit") {
    trace({.path = path, .calls = 10}, calls);
    CHECK(is_valid(path, {.calls = 10, .shards = 20}));
  }
}

TEST_CASE("an arrow from a dropped call is left out") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel inner{rows_of, host_devices(1)};
  const ParallelModel outer{[&inner](Rows rows) { return static_cast<int>(inner(rows).size()); }, host_devices(1)};
  trace({.path = path, .calls = 1, .keep_first = true}, [&] { outer(std::vector<int>(4)); });
  CHECK(is_valid(path, {.calls = 1, .shards = 1, .dropped = 1}));  // the inner call, which ended first
}

TEST_CASE("calls that still run when the function ends are left out") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  std::atomic<bool> go{false};
  const ParallelModel model{[&go](Rows rows) {
                              while (rows.size() > 4 && !go.load()) std::this_thread::yield();
                              return static_cast<int>(rows.size());
                            },
                            host_devices(1)};
  auto late = trace(path, [&model] {
    model(std::vector<int>(4));
    return model.async(std::vector<int>(5));
  });
  go = true;
  CHECK(late.get()[0] == 5);
  CHECK(is_valid(path, {.calls = 1, .shards = 1}));
}

TEST_CASE("a trace is written also if its function throws") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel model{rows_of, host_devices(2)};
  CHECK_THROWS_WITH_AS(trace(path,
                             [&model] {
                               model(std::vector<int>(4));
                               throw std::runtime_error("mine");
                             }),
                       "mine", std::runtime_error);
  CHECK(is_valid(path, {.calls = 1, .shards = 2}));
  trace(path, [] {});  // the process can be traced again
  CHECK(is_valid(path, {}));
}

TEST_CASE("a file that cannot be written is an error, before the function runs") {
  bool ran = false;
  const std::string message =
      message_of<fanout::Error>([&ran] { trace("/nowhere/at/all.json", [&ran] { ran = true; }); });
  CHECK(says(message, "cannot be written", "/nowhere/at/all.json", "No such file or directory"));
  CHECK_FALSE(ran);
  const TestFolder folder;
  trace(folder / "run.json", [&ran] { ran = true; });  // the process can be traced
  CHECK(ran);
}

TEST_CASE("a full disk is an error, unless the function throws") {
  if (!std::filesystem::exists("/dev/full")) return fanout_test::skip("there is no /dev/full");
  CHECK(says(message_of<fanout::Error>([] { trace("/dev/full", [] {}); }), "/dev/full", "No space left on device"));
  CHECK_THROWS_WITH_AS(trace("/dev/full", [] { throw std::runtime_error("mine"); }), "mine", std::runtime_error);
}

TEST_CASE("a process is traced once at a time") {
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const ParallelModel model{rows_of, host_devices(1)};
  trace(path, [&] {
    model(std::vector<int>(4));
    const auto again = [&] { trace(path, [] { FAIL("it ran"); }); };
    CHECK(says(message_of<fanout::Error>(again), "trace() inside of another trace()", path));
    std::thread([&] { CHECK_THROWS_AS(again(), fanout::Error); }).join();
  });
  CHECK(count(text_of(path), "\"cat\": \"shard\"") == 1);  // the inner one has not emptied the file
}

TEST_CASE("a number that no process has is an error") {
  const TestFolder folder;
  for (const int process : {-2, (1 << 22) + 1}) {
    CHECK(says(message_of<fanout::InvalidArgument>(
                   [&] { trace({.path = folder / "run.json", .process = process}, [] { FAIL("it ran"); }); }),
               "TraceOptions::process", std::to_string(process)));
  }
}

TEST_CASE("the child of a fork writes nothing, and may trace by itself") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const std::string own = folder / "own.json";
  const ParallelModel model{rows_of, host_devices(2)};
  bool is_child = false;
  int code = 0;
  const auto fork_inside = [&] {
    model(std::vector<int>(4));
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      is_child = true;
      model(std::vector<int>(4));
      trace(own, [&] { model(std::vector<int>(4)); });
      return;  // out of the parent's trace
    }
    code = fanout_test::exit_code_of(child);
    if (text_of(path).empty()) model(std::vector<int>(4));
  };
  trace(path, fork_inside);
  if (is_child) ::_exit(0);
  CHECK(code == 0);
  CHECK(is_valid(path, {.calls = 2, .shards = 4}));
  CHECK(is_valid(own, {.calls = 1, .shards = 2}));
}

TEST_CASE("a trace is the same in each locale") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const ParallelModel model{rows_of, host_devices(2)};
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  trace(folder / "run.json", [&model] { model(std::vector<int>(2000)); });
  std::locale::global(before);
  CHECK(is_valid(folder / "run.json", {.calls = 1, .shards = 2}));
}

TEST_CASE("names of types are written as strings of JSON") {
  CHECK(fanout::detail::json_string("a<'\"'>\\ \n\x1f") == R"("a<'\"'>\\ \u000a\u001f")");
}

TEST_CASE("traces of several processes are merged") {
  if (!fanout_test::has_python()) return fanout_test::skip("there is no python3");
  const TestFolder folder;
  const ParallelModel model{rows_of, host_devices(2)};
  for (int rank = 0; rank < 3; ++rank) {
    trace({.path = folder / ("run." + std::to_string(rank) + ".json"), .calls = 4, .process = rank}, [&model] {
      for (int i = 0; i < 5; ++i) model(std::vector<int>(4));
    });
  }
  const std::string merge = beside(__FILE__, "../../examples/merge_traces.py");
  REQUIRE(python(merge, folder / "all.json" + " " + folder / "run.0.json" + " " + folder / "run.1.json" + " " +
                            folder / "run.2.json"));
  CHECK(is_valid(folder / "all.json", {.calls = 12, .shards = 24, .dropped = 3, .processes = 3}));
  CHECK_FALSE(python(merge, folder / "twice.json" + " " + folder / "run.0.json" + " " + folder / "run.0.json"));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <time.h>
#include <unistd.h>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/observe/call_records.hpp>
#include <fanout/observe/trace_events.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout { inline namespace v0 {

/// Where a trace is written, and how much of it.
struct TraceOptions {
  /// The file. It is overwritten.
  std::string path;
  /// At most so many calls are kept. A call takes about 80 bytes, and 100 bytes for each of its shards.
  std::size_t calls = 100'000;
  /// If there are more calls: true to drop the latest, false to drop the earliest. The file says how many were dropped.
  bool keep_first = false;
  /// Names this process in the file, 0 or more. Files whose numbers differ can be merged: pass the rank. By default,
  /// the process id.
  int process = -1;
};

namespace detail {

/// A trace that is being recorded.
class Trace {
 public:
  /// Throws Error if the file cannot be written, or if the process is traced already.
  FANOUT_INLINE explicit Trace(const TraceOptions& options);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  FANOUT_INLINE ~Trace();

  /// Ends the trace and writes it. Throws Error if that fails. Does nothing in a forked child.
  FANOUT_INLINE void write();

 private:
  static constexpr int most_processes = 1 << 22;  // what process ids of Linux are below

  static std::int64_t unix_time() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  bool is_forked() const noexcept { return epoch_ != fork_epoch(); }

  [[noreturn]] void throw_unwritten(const std::string& why) const {
    throw Error(explain({.what = "the file of a trace cannot be written", .where = path_, .found = why}));
  }

  std::string path_;
  int process_;
  std::unique_ptr<CallRecords> records_;
  std::FILE* file_ = nullptr;
  bool is_written_ = false;
  const std::uint32_t epoch_ = fork_epoch();
  const Clock::Time start_ = Clock::now();
  const std::int64_t unix_start_ = unix_time();
};

}  // namespace detail

/// Calls `f()` and returns what it returns. Records all calls of models in this process meanwhile, and writes them as a
/// timeline for Perfetto (ui.perfetto.dev) and chrome://tracing. It has a lane for each device and for each thread that
/// calls models. Arrows lead from a call to its shards, and from a shard to the calls that its `forward` makes.
///
/// Only calls that have ended are in it: use the results of asynchronous calls in `f`. The file is written when `f` has
/// ended, also if that throws. Then an error of writing is ignored. Throws Error if the file cannot be written, before
/// `f` if it cannot be opened. Throws Error if the process is traced already. The child of a fork writes nothing.
template <class F>
std::invoke_result_t<F> trace(const TraceOptions& options, F&& f) {
  detail::Trace trace(options);
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    std::forward<F>(f)();
    trace.write();
  } else {
    std::invoke_result_t<F> result = std::forward<F>(f)();
    trace.write();
    return result;
  }
}

/// The same, to the file of this path.
template <class Path, class F>
  requires std::is_convertible_v<const Path&, std::string> std::invoke_result_t<F> trace(
      const Path& path, F&& f) {  // a template, so that it takes no braces
    return trace(TraceOptions{.path = path}, std::forward<F>(f));
  }

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/trace.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/trace.hpp>

#include <cerrno>

#include <fanout/measure/call_observer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Trace::Trace(const TraceOptions& options)
    : path_(options.path),
      process_(options.process),
      records_(std::make_unique<CallRecords>(options.calls, options.keep_first)) {
  if (process_ < -1 || process_ > most_processes) {
    throw InvalidArgument(explain({.what = "a number that no process has",
                                   .where = "TraceOptions::process",
                                   .expected = "0 to " + std::to_string(most_processes) + ", or -1 for the process id",
                                   .found = std::to_string(process_)}));
  }
  if (process_ == -1) process_ = ::getpid();
  // Registered first: otherwise a trace inside of one with the same path would empty its file.
  if (!process_observer.set(*records_)) {
    throw Error(explain({.what = "trace() inside of another trace(), or while another thread is in one",
                         .where = path_,
                         .advice = "trace all in one call of trace()"}));
  }
  file_ = std::fopen(path_.c_str(), "we");
  if (file_ == nullptr) {
    const int why = errno;
    process_observer.unset(*records_);  // first, since making the message may throw
    throw_unwritten(std::strerror(why));
  }
}

Trace::~Trace() {
  try {
    if (!is_written_) write();
  } catch (...) {  // the exception of what was traced takes precedence
  }
  std::fclose(file_);                                      // nothing is buffered
  if (is_forked()) static_cast<void>(records_.release());  // a thread of the parent may have been changing it
}

void Trace::write() {
  is_written_ = true;
  if (is_forked()) return;
  process_observer.unset(*records_);
  const TraceEvents events(*records_, process_, start_, unix_start_);
  const std::string& text = events.text();
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
    throw_unwritten(std::strerror(errno));
  }
}

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>
#include <vector>

namespace fanout { inline namespace v0 { namespace detail {

/// Where nothing is known of threads beyond POSIX: they are not bound, and have no names.
struct PosixThreads {
  static std::vector<int> process_cores() { return {}; }
  static void bind(const std::vector<int>&) noexcept {}
  static void name(const std::string&) noexcept {}
  static void wake_in_time() noexcept {}
};

}}}  // namespace fanout::v0::detail

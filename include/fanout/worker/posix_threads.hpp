// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <string>
#include <vector>

#include <pthread.h>

namespace fanout { inline namespace v0 { namespace detail {

/// Where nothing is known of threads beyond POSIX: they are not bound, and have no names.
struct PosixThreads {
  template <std::same_as<std::vector<int>> Cores = std::vector<int>>
  static Cores process_cores() {
    return {};
  }
  template <std::same_as<std::vector<int>> Cores = std::vector<int>>
  static bool bind(pthread_attr_t&, const Cores&) noexcept {
    return false;
  }
  template <std::same_as<std::vector<int>> Cores = std::vector<int>>
  static void bind(pthread_t, const Cores&) noexcept {}
  static void name(pthread_t, const std::string&) noexcept {}
  static void wake_in_time() noexcept {}
};

}}}  // namespace fanout::v0::detail

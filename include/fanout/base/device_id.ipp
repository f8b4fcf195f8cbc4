// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/device_id.hpp>

#include <cstdint>
#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

std::string to_string(DeviceKind kind) {
  detail::Text text;
  for (std::uint64_t letters = kind.letters_; letters != 0; letters >>= 8) {
    text << static_cast<char>(letters & 0xff);
  }
  return text;
}

std::string to_string(const DeviceId& id) {
  detail::Text text;
  text << id.kind << ':' << id.index;
  if (id.instance != 0) text << '#' << id.instance;
  return text;
}

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/device_id.hpp>

#include <cstdint>
#include <string>

namespace fanout { inline namespace v0 {

std::string to_string(DeviceKind kind) {
  std::string text;
  for (std::uint64_t letters = kind.letters_; letters != 0; letters >>= 8) {
    text += static_cast<char>(letters & 0xff);
  }
  return text;
}

std::string to_string(const DeviceId& id) {
  const std::string name = to_string(id.kind) + ":" + std::to_string(id.index);
  return id.instance == 0 ? name : name + "#" + std::to_string(id.instance);
}

}}  // namespace fanout::v0

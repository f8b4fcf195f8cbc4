// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/device/device_set.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

[[noreturn]] void refuse_no_devices(std::string_view kinds) {
  throw InvalidDeviceId(explain({.what = "Invalid device id",
                                 .where = "DeviceSet",
                                 .expected = Text() << "at least one device of " << kinds,
                                 .found = "none"}));
}

void check_devices_differ(const std::vector<DeviceId>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!(ids[i] == ids[j])) continue;
      throw InvalidDeviceId(
          explain({.what = "Invalid device id",
                   .where = "DeviceSet",
                   .expected = "each device once",
                   .found = Text() << ids[i] << " at positions " << j << " and " << i,
                   .advice = "select all devices of one kind in one set: two sets of a kind have devices in common"}));
    }
  }
}

}}}  // namespace fanout::v0::detail

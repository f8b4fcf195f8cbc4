// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/library_reduction.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

LibraryReduction::LibraryReduction(const MpiGroup& group, std::vector<backend::RankedValue> values, bool takes_devices,
                                   const Limits& limits)
    : group_(group), values_(std::move(values)), limits_(limits) {
  for (const backend::RankedValue& value : values_) {
    if (value.count != 0) add(value);
  }
  for (ReducedMessage& message : messages_) message.prepare(takes_devices);
}

void LibraryReduction::run(bool counts) {
  for (ReducedMessage& message : messages_) {
    if (!counts) message.exclude();
    message.reduce(group_.get(), limits_.numbers);
  }
}

void LibraryReduction::add(const backend::RankedValue& value) {
  const bool is_small = value.count * value.fold->element_size <= limits_.packed_bytes;
  const auto open = std::find_if(messages_.begin(), messages_.end(),
                                 [&](const ReducedMessage& message) { return message.takes(value); });
  if (is_small && open != messages_.end()) {
    open->add(value);
  } else {
    messages_.emplace_back(value, is_small);
  }
}

}}}  // namespace fanout::v0::detail

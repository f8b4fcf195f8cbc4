// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/value_blocks.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

ValueBlocks::ValueBlocks(std::span<const backend::RankedValue> values, std::size_t ranks) {
  std::size_t all = 0;
  for (const backend::RankedValue& value : values) all += value.count * value.fold->element_size;
  cut(values, size_of_block(all, ranks));
  slices_ = EvenParts(first_parts_.size(), ranks);
  first_parts_.push_back(parts_.size());
  for (std::size_t i = 0; i + 1 < first_parts_.size(); ++i) {
    largest_ = std::max(largest_, block(i).bytes());
    any_packed_ = any_packed_ || block(i).is_packed();
  }
}

void ValueBlocks::cut(std::span<const backend::RankedValue> values, std::size_t size) {
  parts_.reserve(values.size() + 1);
  std::size_t left = 0;  // bytes of values that fit into the last block
  std::size_t end = 0;   // of its message
  for (const backend::RankedValue& value : values) {
    const std::size_t element = value.fold->element_size;
    const std::size_t alignment = element & (~element + 1);  // at least that of the type: its size is a multiple
    for (std::size_t begin = 0; begin < value.count;) {
      if (left < element) {
        first_parts_.push_back(parts_.size());
        left = std::max(size, element);
        end = 0;
      }
      const std::size_t rest = value.count - begin;
      const std::size_t count = rest * element <= left ? rest : left / element;
      const std::size_t at = (end + alignment - 1) & ~(alignment - 1);
      parts_.push_back({value.fold, static_cast<std::byte*>(value.data) + begin * element, count, at});
      left -= count * element;
      end = at + count * element;
      begin += count;
    }
  }
}

}}}  // namespace fanout::v0::detail

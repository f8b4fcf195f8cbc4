// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/stages/batch_reductions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/collective/rank_elements.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void BatchReductions::add(const backend::RankedValue& value, const LeafPath& path) {
  const std::size_t bytes = value.count * value.fold->element_size;
  if (value.fold->element_size == 0) {
    throw Error(explain({.what = "a value is combined over micro-batches whose bytes cannot be copied",
                         .where = to_string(path),
                         .expected = "numbers, arrays of numbers, or a trivially copyable type",
                         .found = value.fold->name()}));
  }
  if (is_first_) values_.push_back({Storage(backend::Memory{}, bytes), {value.extents, value.extents + value.axes}});
  const Combined& so_far = values_[next_++];
  if (!std::equal(so_far.extents.begin(), so_far.extents.end(), value.extents, value.extents + value.axes)) {
    throw ShapeMismatch(explain({.what = "arrays of two micro-batches cannot be combined",
                                 .where = to_string(path),
                                 .expected = Text() << so_far.bytes.bytes() / value.fold->element_size << " elements",
                                 .found = Text() << value.count,
                                 .advice = "return an array of the same extents for any rows"}));
  }
  if (is_first_) {
    backend::transfer(backend::Memory{}, so_far.bytes.data(), value.space, value.data, bytes);
  } else {
    Storage copy;  // of a value in device memory
    const void* here = value.data;
    if (!(value.space == host_memory)) {
      copy = Storage(backend::Memory{}, bytes);
      backend::transfer(backend::Memory{}, copy.data(), value.space, value.data, bytes);
      here = copy.data();
    }
    const std::array<const void*, 2> both{so_far.bytes.data(), here};
    value.fold->combine(so_far.bytes.data(), backend::RankElements::in(both), value.count);
  }
  if (is_last_ && !is_first_) {
    backend::transfer(backend::memory_of(value.space), value.data, host_memory, so_far.bytes.data(), bytes);
  }
}

}}}  // namespace fanout::v0::detail

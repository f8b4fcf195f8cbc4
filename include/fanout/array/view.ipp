// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/array/view.hpp>

#include <cstddef>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_rows(const RowRange& range, std::size_t rows) {
  throw InvalidArgument(explain({.what = "rows outside of their array",
                                 .expected = Text() << "rows within " << RowRange{0, rows},
                                 .found = to_string(range)}));
}

void check_host_access(const MemorySpace& space) {
  const backend::Memory memory = backend::memory_of(space);
  if (memory.operations != nullptr && memory.operations->host_access) return;
  throw DeviceMismatch(
      explain({.what = Text() << two_devices(host_memory, space) << ": elements of a tensor used from the host",
               .expected = to_string(host_memory),
               .found = to_string(space),
               .advice = "copy the tensor to the host first: to_host(x)"}));
}

}}}  // namespace fanout::v0::detail

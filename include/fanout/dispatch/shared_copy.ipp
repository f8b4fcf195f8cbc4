// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/dispatch/shared_copy.hpp>

#include <cstddef>

#include <fanout/dispatch/fork_join.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/plan/even_split.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void copy_shared(const RowsCopy& copy, const DeviceTable* team) {
  const std::size_t bytes = copy.bytes();
  const std::size_t most = bytes / (shared_from / 2);
  if (team == nullptr || team->size() < 2 || most < 2) return copy_rows(copy);
  const std::size_t parts = team->size() < most ? team->size() : most;
  const auto begin = [&](std::size_t i) { return i == parts ? bytes : bytes / parts * i / 4096 * 4096; };
  run_shards(EvenSplit{}(parts, parts), *team,
             [&](std::size_t i) noexcept { copy_part(copy, begin(i), begin(i + 1), bytes >= streamed_from); });
}

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace backend {

/// The first element of each rank, for a reduction: `elements[rank]`.
struct RankElements {
  const void* (*from)(const void* of, std::size_t rank);
  const void* of;
  std::size_t ranks;

  const void* operator[](std::size_t rank) const { return from(of, rank); }

  /// Those whose addresses are in a list, a std::vector of pointers. Borrows the list.
  template <class List>
  static RankElements in(const List& addresses) noexcept {
    return {.from = [](const void* list, std::size_t rank) -> const void* {
              return (*static_cast<const List*>(list))[rank];
            },
            .of = &addresses,
            .ranks = addresses.size()};
  }
};

}}}  // namespace fanout::v0::backend

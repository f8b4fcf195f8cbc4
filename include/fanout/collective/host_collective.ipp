// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/host_collective.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Fit fit(const backend::Collective& a, const backend::Collective& b) {
  const bool matched = a.is_between_two() ? b.is_between_two() : a.kind == b.kind && a.root == b.root;
  if (!matched || a.direct != b.direct || a.reduction != b.reduction || a.leaf != b.leaf || a.leaves != b.leaves)
    return Fit::other_structure;
  if (a.type != b.type) {  // two shared libraries may have an object each for one type
    if (a.type == nullptr || b.type == nullptr) return Fit::other_structure;
    if (a.type->size != b.type->size || a.type->name() != b.type->name()) return Fit::other_structure;
  }
  return a.extents == b.extents ? Fit::fits : Fit::other_shape;
}

void HostCollective::run_part_of(std::size_t rank, std::size_t turn) const noexcept {
  const backend::Collective& own = *calls_[rank];
  if (own.direct) return;
  switch (own.kind) {
    case backend::Collective::Kind::broadcast:
      copy_elements(own.to, calls_[own.root]->from, own.bytes());
      break;
    case backend::Collective::Kind::all_gather:
      for (std::size_t i = 0; i < ranks_; ++i) {
        copy_elements(static_cast<std::byte*>(calls_[i]->to) + rank * own.bytes(), own.from, own.bytes());
      }
      break;
    case backend::Collective::Kind::reduce:
    case backend::Collective::Kind::all_reduce:
      reduce_share(rank, turn);
      break;
    case backend::Collective::Kind::reduce_scatter:
      for_blocks(own, 0, own.count, [&](void* block, std::size_t begin, std::size_t count) {
        reduce(block, rank * own.count + begin, count);
        copy_elements(at(own.to, begin), block, count * own.type->size);
      });
      break;
    case backend::Collective::Kind::send:
    case backend::Collective::Kind::recv:
    case backend::Collective::Kind::barrier:
      break;
  }
}

void HostCollective::reduce_share(std::size_t rank, std::size_t turn) const noexcept {
  const backend::Collective& own = *calls_[rank];
  const bool small = own.bytes() <= block_bytes;
  if (small && rank != turn % ranks_) return;
  const std::size_t each = own.count / ranks_;
  const std::size_t first = small ? 0 : rank * each;
  const std::size_t end = small || rank + 1 == ranks_ ? own.count : first + each;
  for_blocks(own, first, end, [&](void* block, std::size_t begin, std::size_t count) {
    reduce(block, begin, count);
    for (std::size_t i = 0; i < ranks_; ++i) {
      if (own.kind == backend::Collective::Kind::reduce && i != own.root) continue;
      copy_elements(at(calls_[i]->to, begin), block, count * own.type->size);
    }
  });
}

void HostCollective::reduce(void* block, std::size_t begin, std::size_t count) const noexcept {
  struct From {
    const HostCollective& collective;
    std::size_t begin;
  };
  const From from{*this, begin};
  const auto elements = [](const void* of, std::size_t rank) -> const void* {
    const From& found = *static_cast<const From*>(of);
    return found.collective.at(found.collective.calls_[rank]->from, found.begin);
  };
  calls_[0]->type->reduce(calls_[0]->reduction, block, {elements, &from, ranks_}, count);
}

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/rendezvous_note.hpp>

#include <cstddef>
#include <string>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousNote RendezvousNote::of(Kind kind, const std::vector<backend::Collective*>& calls) {
  RendezvousNote note{
      .kind = kind, .structure = backend::RankedStep::hash_of_nothing, .extents = backend::RankedStep::hash_of_nothing};
  std::string all;
  for (const backend::Collective* const call : calls) {
    note.add(*call);
    if (all.size() < sizeof(text)) all += (all.empty() ? "" : ", ") + backend::to_string(*call);
  }
  note.says(all);
  return note;
}

void RendezvousNote::add(const backend::Collective& call) {
  using backend::RankedStep;
  if (!call.is_between_two()) {
    RankedStep::mix(structure, static_cast<unsigned char>(call.kind));
    RankedStep::mix(structure, call.root);
  }
  RankedStep::mix(structure, call.direct ? 1 : 0);
  RankedStep::mix(structure, static_cast<unsigned char>(call.reduction));
  RankedStep::mix(structure, RankedStep::hash_of(call.leaf));
  RankedStep::mix(structure, call.leaves);
  RankedStep::mix(structure, call.type == nullptr ? 0 : RankedStep::hash_of(call.type->name()));
  RankedStep::mix(extents, call.extents.size());
  for (std::size_t axis = 0; axis < call.extents.size(); ++axis) RankedStep::mix(extents, call.extents[axis]);
}

}}}  // namespace fanout::v0::detail

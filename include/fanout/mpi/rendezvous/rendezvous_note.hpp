// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective.hpp>
#include <fanout/collective/host_collective.hpp>
#include <fanout/collective/process_ranks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a rank of an MpiRendezvous tells another one, before any data: that it waits in collectives, in a send or in a
/// recv, or that it has left. Or a turn that it proposes for such calls: see LaunchOrder. It travels as bytes.
struct RendezvousNote {
  enum class Kind : std::uint64_t { collectives, send, recv, left, turn };

  Kind kind = Kind::left;
  std::uint64_t structure = 0;  ///< hash of what both ranks must have in common, without extents
  std::uint64_t extents = 0;    ///< hash of the extents
  std::uint64_t notes = 0;      ///< number of notes that belong together: those of one MpiRendezvous::meet()
  std::uint64_t culprit = 0;    ///< of a rank that left: the rank that caused it, itself or one that it waited for
  std::uint64_t turn = 0;       ///< of a turn
  Kind turn_of = Kind::left;    ///< of a turn: `collectives`, or the call of the rank that sends it
  std::uint64_t late = 0;       ///< of a rank that left since processes were late: how many of them `late_ones` has
  std::uint32_t late_ones[8] = {};
  char text[416] = {};  ///< what the rank calls, or why it left

  /// A note of calls that belong together: the collectives of a group, or one send or recv.
  FANOUT_INLINE static RendezvousNote of(Kind kind, const std::vector<backend::Collective*>& calls);

  /// Sets the text, or as much of it as there is room for.
  void says(std::string_view all) noexcept {
    std::memcpy(text, all.data(), std::min(all.size(), sizeof(text) - 1));
    if (all.size() >= sizeof(text)) std::memcpy(text + sizeof(text) - 4, "...", 4);
  }

  Fit fits(const RendezvousNote& other) const noexcept {
    if (structure != other.structure) return Fit::other_structure;
    return extents == other.extents ? Fit::fits : Fit::other_shape;
  }

 private:
  FANOUT_INLINE void add(const backend::Collective& call);
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/rendezvous/rendezvous_note.ipp>
#endif

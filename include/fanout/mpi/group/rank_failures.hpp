// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// Exceptions as text, so that a rank can tell the others why it failed. A text is a list of fields, each ended by a
// zero character: the rank's name, the note of a ReplicaError, then either one message, or eight fields for each of its
// failures. A text may be cut, and its last field with it.

FANOUT_INLINE std::string message_with_type(const std::exception_ptr& exception);

/// True if a shard was only released from a collective, since another one failed.
FANOUT_INLINE bool is_released(const std::exception_ptr& exception);

inline void add_field(std::string& text, const std::string& field) {
  constexpr std::size_t longest = 4000;
  text += field.substr(0, longest) + '\0';
}

/// A failure of the rank of this name that is no ReplicaError.
FANOUT_INLINE std::string message_as_text(const std::string& name, const std::string& message);

/// Why the rank of this name failed.
FANOUT_INLINE std::string failures_as_text(const std::string& name, const std::exception_ptr& exception);

FANOUT_INLINE std::vector<std::string> fields_of(const std::string& text);

/// Throws the exception of a call that failed on ranks. `texts` has the text of each rank, empty if it has not failed.
/// A rank whose own exception is no ReplicaError throws that. All others throw one ReplicaError with the failures of
/// all ranks, or an Error with the texts if `forward` threw on none. The ReplicaError lists shards that were only
/// released from a collective if nothing else has failed.
[[noreturn]] FANOUT_INLINE void throw_failures_of_ranks(const std::vector<std::string>& texts,
                                                        const std::exception_ptr& own, std::size_t shards);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/group/rank_failures.ipp>
#endif

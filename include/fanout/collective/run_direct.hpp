// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/rendezvous_rank.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Lets devices run collectives. If that throws, releases the devices, and returns the reason for all ranks.
FANOUT_INLINE RendezvousVerdict run_direct(backend::TransportRanks& direct,
                                           std::span<const backend::RankedCall> calls) noexcept;

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/collective/run_direct.ipp>
#endif

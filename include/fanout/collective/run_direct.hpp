// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <span>

#include <fanout/base/error.hpp>
#include <fanout/collective/collective_transport.hpp>
#include <fanout/collective/rendezvous_rank.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Lets devices run collectives. If that throws, releases the devices, and returns the reason for all ranks.
inline RendezvousVerdict run_direct(backend::TransportRanks& direct,
                                    std::span<const backend::RankedCall> calls) noexcept {
  const auto broken_by = [](const char* what) {
    return RendezvousVerdict::made_by(
        [what] { return RendezvousVerdict{.what = RendezvousVerdict::broken, .text = what}; });
  };
  try {
    direct.run(calls);
    return {};
  } catch (const CommunicatorAbandoned& released) {
    direct.abort();
    return RendezvousVerdict::made_by([&released] {
      return RendezvousVerdict{
          .what = RendezvousVerdict::abandoned, .culprit = released.rank(), .text = released.what()};
    });
  } catch (const std::exception& exception) {
    direct.abort();
    return broken_by(exception.what());
  } catch (...) {
    direct.abort();
    return broken_by("an exception that is no std::exception");
  }
}

}}}  // namespace fanout::v0::detail

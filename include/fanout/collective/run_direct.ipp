// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/collective/run_direct.hpp>

#include <exception>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

RendezvousVerdict run_direct(backend::TransportRanks& direct, std::span<const backend::RankedCall> calls) noexcept {
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

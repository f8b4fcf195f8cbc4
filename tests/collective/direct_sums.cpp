// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <fanout/collective/direct_sums.hpp>

namespace {

using fanout::DeviceId;
using fanout::backend::ResultSum;

/// Counts what it is asked for.
class CountingSums final : public fanout::backend::CollectiveTransport {
 public:
  bool opens = true;
  mutable std::vector<DeviceId> devices;
  mutable int opened = 0;
  mutable int added = 0;
  mutable int closed = 0;

  fanout::backend::TransportRanks* open(std::span<const DeviceId> of) const override {
    ++opened;
    devices.assign(of.begin(), of.end());
    ranks_.transport = this;
    return opens ? &ranks_ : nullptr;
  }

 private:
  struct Ranks final : fanout::backend::TransportRanks {
    bool takes(std::size_t, const fanout::backend::Collective&) const noexcept override { return false; }
    void run(std::span<const fanout::backend::RankedCall>) override {}
    bool add_results(const ResultSum& sum) override {
      ++transport->added;
      return sum.count != 0;
    }
    void abort() noexcept override {}
    void close() noexcept override { ++transport->closed; }

    const CountingSums* transport = nullptr;
  };
  mutable Ranks ranks_;
};

const fanout::Plan two_turned{{.rows = {0, 2}, .device = 1}, {.rows = {2, 3}, .device = 0}};
const DeviceId two_remote[] = {{.kind = "remote", .index = 0}, {.kind = "remote", .index = 1}};

}  // namespace

TEST_CASE("a transport is opened for the first sum, with the shards' devices, and closed after the last one") {
  const CountingSums transport;
  {
    fanout::detail::DirectSums sums(&transport, two_turned, two_remote);
    CHECK(sums.has_transport());
    CHECK(transport.opened == 0);
    CHECK(sums.add(ResultSum{.count = 4}));
    CHECK(sums.add(ResultSum{.count = 1}));
    CHECK_FALSE(sums.add(ResultSum{}));
    CHECK(transport.opened == 1);
    CHECK(transport.added == 3);
    CHECK(transport.devices == std::vector<DeviceId>{two_remote[1], two_remote[0]});
    CHECK(transport.closed == 0);
  }
  CHECK(transport.closed == 1);
}

TEST_CASE("nothing is added without a transport, or if it cannot be opened, which is tried once") {
  CountingSums transport;
  transport.opens = false;
  for (const CountingSums* of :
       {static_cast<const CountingSums*>(nullptr), static_cast<const CountingSums*>(&transport)}) {
    fanout::detail::DirectSums sums(of, two_turned, two_remote);
    CHECK(sums.has_transport() == (of != nullptr));
    CHECK_FALSE(sums.add(ResultSum{.count = 4}));
    CHECK_FALSE(sums.add(ResultSum{.count = 4}));
  }
  CHECK(transport.opened == 1);
  CHECK(transport.closed == 0);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>

#include "device/remote_device.hpp"
#include "support/message_of.hpp"

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::RowRange;
using fanout::Tensor;
using fanout_test::message_of;
using fanout_test::remote_devices;

namespace {

/// Adds results of doubles where they lie. What it was asked for is noted.
class AddingTransport final : public fanout::backend::CollectiveTransport {
 public:
  struct Sum {
    std::size_t root;
    std::vector<double> weights;
  };

  mutable std::vector<Sum> sums;
  mutable std::vector<int> of;  // the devices of the shards
  mutable int opened = 0;
  mutable int closed = 0;
  bool opens = true;
  bool adds = true;
  bool fails = false;

  fanout::backend::TransportRanks* open(std::span<const fanout::DeviceId> devices) const override {
    ++opened;
    of.clear();
    for (const fanout::DeviceId& device : devices) of.push_back(device.index);
    ranks_.transport = this;
    return opens ? &ranks_ : nullptr;
  }

 private:
  struct Ranks final : fanout::backend::TransportRanks {
    bool takes(std::size_t, const fanout::backend::Collective&) const noexcept override { return false; }
    void run(std::span<const fanout::backend::RankedCall>) override { CHECK(false); }
    bool add_results(const fanout::backend::ResultSum& wanted) override {
      if (transport->fails) throw fanout::Error("the transport is broken");
      if (!transport->adds || wanted.type->size != sizeof(double)) return false;
      Sum sum{wanted.root, {}};
      std::vector<double> so_far(wanted.count);
      for (std::size_t rank = 0; rank < wanted.arrays.size(); ++rank) {
        const auto& [data, space, weight] = wanted.arrays[rank];
        if (space.owner.index != static_cast<int>(rank)) return false;
        const double* const from = fanout_test::RemoteMemory::reach(static_cast<const double*>(data));
        for (std::size_t k = 0; k < so_far.size(); ++k) so_far[k] += weight * from[k];
        sum.weights.push_back(weight);
      }
      auto* const to = fanout_test::RemoteMemory::reach(static_cast<double*>(wanted.to));
      for (std::size_t k = 0; k < so_far.size(); ++k) to[k] = so_far[k];
      transport->sums.push_back(sum);
      return true;
    }
    void abort() noexcept override {}
    void close() noexcept override { ++transport->closed; }

    const AddingTransport* transport = nullptr;
  };
  mutable Ranks ranks_;
};

/// An array on the shard's device whose elements are all its number of rows.
template <class T>
Tensor<T, 1> count_rows(Context auto& ctx, RowRange rows) {
  return fanout::to(Tensor<T, 1>::full({3}, static_cast<T>(rows.size())), ctx.device());
}

/// All rows on the first of two devices; the second one runs, too.
struct AllOnFirst {
  fanout::Plan operator()(std::size_t rows, std::size_t) const {
    fanout::Plan plan;
    plan.add({.rows = {0, rows}, .device = 0});
    plan.add({.rows = {rows, rows}, .device = 1});
    return plan;
  }
};

constexpr auto sums = [](Context auto& ctx, RowRange rows) { return fanout::psum(count_rows<double>(ctx, rows)); };
constexpr auto means = [](Context auto& ctx, RowRange rows) { return fanout::pmean(count_rows<double>(ctx, rows)); };

}  // namespace

TEST_CASE("a transport adds the arrays of psum and pmean on the devices, weighted by rows for a mean") {
  AddingTransport transport;
  const ParallelModel sum{sums, remote_devices(3), Options{.collectives = &transport}};
  const auto total = sum(fanout::Range(8));
  CHECK(total.space().owner.index == 0);
  CHECK(fanout::to_host(total)[2] == 8);
  REQUIRE(transport.sums.size() == 1);
  CHECK(transport.sums[0].root == 0);
  CHECK(transport.sums[0].weights == std::vector<double>{1, 1, 1});

  const ParallelModel mean{means, remote_devices(3), Options{.collectives = &transport}};
  CHECK(fanout::to_host(mean(fanout::Range(8)))[2] == doctest::Approx((9 + 9 + 4) / 8.0));
  REQUIRE(transport.sums.size() == 2);
  CHECK(transport.sums[1].weights == std::vector<double>{3 / 8.0, 3 / 8.0, 2 / 8.0});
  CHECK(transport.opened == 2);
  CHECK(transport.closed == 2);
  CHECK(transport.of == std::vector{0, 1, 2});
}

TEST_CASE("a transport is opened once for all arrays of a result, and not for results without such arrays") {
  AddingTransport transport;
  const auto tree = [](Context auto& ctx, RowRange rows) {
    return std::tuple{fanout::psum(count_rows<double>(ctx, rows)), fanout::psum(count_rows<float>(ctx, rows)),
                      fanout::pmean(count_rows<double>(ctx, rows)), fanout::psum(rows.size())};
  };
  const ParallelModel model{tree, remote_devices(2), Options{.collectives = &transport}};
  const auto [doubles, floats, mean, number] = model(fanout::Range(6));
  CHECK(fanout::to_host(doubles)[0] == 6);
  CHECK(fanout::to_host(floats)[0] == 6);  // by the host: the transport takes no floats
  CHECK(fanout::to_host(mean)[0] == 3);
  CHECK(number == 6);
  CHECK(transport.sums.size() == 2);
  CHECK(transport.opened == 1);

  const auto numbers = [](RowRange rows) { return std::tuple{fanout::psum(rows.size()), fanout::psum(rows.size())}; };
  const ParallelModel plain{numbers, remote_devices(2), Options{.collectives = &transport}};
  CHECK(plain(fanout::Range(6)) == std::tuple{std::size_t{6}, std::size_t{6}});
  CHECK(transport.opened == 1);

  const auto turned = [](std::size_t rows, std::size_t) {
    return fanout::Plan{{.rows = {0, rows / 2}, .device = 1}, {.rows = {rows / 2, rows}, .device = 0}};
  };
  transport.opens = false;  // which is tried once
  const ParallelModel other{tree, remote_devices(2), Options{.split = turned, .collectives = &transport}};
  CHECK(fanout::to_host(std::get<0>(other(fanout::Range(6))))[0] == 6);
  CHECK(transport.opened == 2);
  CHECK(transport.of == std::vector{1, 0});
}

TEST_CASE("the host adds what a transport does not") {
  AddingTransport transport;
  const ParallelModel sum{sums, remote_devices(2), Options{.collectives = &transport}};
  const ParallelModel mean{means, remote_devices(2), Options{.collectives = &transport}};
  SUBCASE("these devices are not connected") { transport.opens = false; }
  SUBCASE("it adds no results") { transport.adds = false; }
  CHECK(fanout::to_host(sum(fanout::Range(5)))[1] == 5);
  CHECK(fanout::to_host(mean(fanout::Range(5)))[1] == doctest::Approx((9 + 4) / 5.0));
  transport.opens = transport.adds = true;
  transport.sums.clear();
  const auto ones = [](Context auto& ctx, RowRange rows) {
    const auto size = static_cast<double>(rows.size());
    return fanout::pmean(fanout::to(Tensor<double, 1>::full({3}, size / size), ctx.device()));
  };
  const ParallelModel uneven{ones, remote_devices(2), Options{.split = AllOnFirst{}, .collectives = &transport}};
  CHECK(fanout::to_host(uneven(fanout::Range(5)))[1] == 1);  // the mean of a shard without rows is NaN
  const auto greatest = [](Context auto& ctx, RowRange rows) { return fanout::pmax(count_rows<double>(ctx, rows)); };
  const ParallelModel max{greatest, remote_devices(2), Options{.collectives = &transport}};
  CHECK(fanout::to_host(max(fanout::Range(5)))[1] == 3);
  const auto here = [](RowRange rows) {
    return fanout::psum(Tensor<double, 1>::full({3}, static_cast<double>(rows.size())));
  };
  const ParallelModel of_host{here, remote_devices(2), Options{.collectives = &transport}};
  CHECK(fanout::to_host(of_host(fanout::Range(5)))[1] == 5);
  CHECK(transport.sums.empty());
}

TEST_CASE("a call throws what the transport throws while it adds, and the model works afterwards") {
  AddingTransport transport;
  const ParallelModel sum{sums, remote_devices(2), Options{.collectives = &transport}};
  transport.fails = true;
  CHECK(message_of<fanout::Error>([&] { sum(fanout::Range(5)); }).find("the transport is broken") != std::string::npos);
  transport.fails = false;
  CHECK(fanout::to_host(sum(fanout::Range(5)))[1] == 5);
  CHECK(transport.opened == transport.closed);
}

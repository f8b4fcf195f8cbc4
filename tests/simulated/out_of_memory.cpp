// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made again with fewer rows at a time on a device that ran out of memory.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::DeviceId;
using fanout::Options;
using fanout::OutOfMemory;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout::simulated_devices;
using fanout::SimulatedDeviceOptions;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace shrink_test {

const DeviceId on_host{.kind = "host", .index = 0};

/// Uses 12 bytes for each element: the input, scratch and the output.
struct Doubles {
  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    auto scratch = fanout::empty<float>(ctx, x.extent(0), x.extent(1));
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      for (std::size_t k = 0; k < x.extent(1); ++k) {
        scratch(i, k) = 2 * x(i, k);
        y(i, k) = scratch(i, k);
      }
    }
    return std::tuple(y, fanout::psum(x.extent(0)));
  }
};

/// Uses 12 bytes for each element: the input, the output and a tensor.
struct InStruct {
  struct Result {
    Tensor<float, 2> doubled;
    std::vector<std::size_t> rows;
  };
  Result forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      for (std::size_t k = 0; k < x.extent(1); ++k) y(i, k) = 2 * x(i, k);
    }
    return {y, {x.extent(0)}};
  }
};

Tensor<float, 2> ascending(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> x(rows, columns);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

template <class Result>
void check_doubled(const Result& result, const Tensor<float, 2>& x) {
  const auto& [y, rows] = result;
  CHECK(rows == x.extent(0));
  REQUIRE(y.extents() == x.extents());
  std::size_t wrong = 0;  // a check of each element would take minutes
  for (std::size_t i = 0; i < x.size(); ++i) wrong += y.data()[i] == 2 * x.data()[i] ? 0 : 1;
  CHECK(wrong == 0);
}

struct Counts {
  int calls = 0;
  std::size_t forward(Context auto& ctx, View<const float, 2> x) {
    ++calls;
    return fanout::empty<float>(ctx, 100 * x.extent(0)).size();
  }
};

}  // namespace shrink_test

TEST_CASE("a device that runs out of memory gets half as many rows at a time, until they fit") {
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].memory = 15'000;  // 312 of its 1,000 rows of 48 bytes
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  const auto x = shrink_test::ascending(3000, 4);
  const auto check = [&] { shrink_test::check_doubled(model(x), x); };
  check();
  CHECK(model.report().failed_calls() == 2);  // with 1,000 and 500 rows; 250 fit
  const auto before = model.report();
  for (int call = 0; call < 100; ++call) check();
  const auto after = model.report();
  CHECK(after.failed_calls() == 2);
  const std::uint64_t shards[] = {1, 4, 1};
  for (std::size_t i = 0; i < 3; ++i) {  // each device keeps its share
    CHECK(after.devices()[i].rows - before.devices()[i].rows == 100 * 1000);
    CHECK(after.devices()[i].shards - before.devices()[i].shards == 100 * shards[i]);
    CHECK(after.devices()[i].most_rows == (i == 1 ? 250 : 0));
  }
  CHECK(to_string(after).find("gets at most 250 rows at a time") != std::string::npos);

  // Another shape has limits of its own: these rows are smaller.
  const auto small = shrink_test::ascending(1200, 2);
  shrink_test::check_doubled(model(small), small);
  CHECK(model.report().failed_calls() == 2);
  CHECK(model.report().devices()[1].shards - after.devices()[1].shards == 1);
}

TEST_CASE("a device that is alone runs a batch that is larger than its memory") {
  std::vector<SimulatedDeviceOptions> options(1);
  options[0].memory = 6000;  // 125 of 1,000 rows
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  const auto x = shrink_test::ascending(1000, 4);
  shrink_test::check_doubled(model(x), x);
  CHECK(model.report().failed_calls() == 3);  // 125 fit exactly
  fanout::Tensor<float, 2> y(1000, 4);
  std::size_t rows = 0;
  for (int call = 0; call < 100; ++call) model.into(std::tie(y, rows))(x);
  shrink_test::check_doubled(std::tuple(y, rows), x);
  CHECK(model.report().failed_calls() == 3);
  CHECK(model.report().devices()[0].shards == 101 * 8);
}

TEST_CASE("tensors in structs leave the memory of the device, too") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].memory = 6000;
  const ParallelModel model{shrink_test::InStruct{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  const auto x = shrink_test::ascending(2000, 4);
  for (int call = 0; call < 3; ++call) {
    const auto [doubled, rows] = model(x);
    CHECK(rows.size() == 1 + 8);
    shrink_test::check_doubled(std::tuple(doubled, std::accumulate(rows.begin(), rows.end(), std::size_t{0})), x);
  }
  CHECK(model.report().failed_calls() == 3);
  CHECK(model.report().devices()[1].most_rows == 125);
}

TEST_CASE("a device that is out of memory takes over small blocks only, and others keep large ones") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].memory = 3000;
  options[1].rows_per_second = 8e6;
  options[0].rows_per_second = 1e6;
  const auto x = shrink_test::ascending(2000, 4);
  const auto check = [&](const fanout::AnySplit& split, std::uint64_t times_faster) {
    const ParallelModel model{
        shrink_test::Doubles{}, simulated_devices(options),
        Options{.output = shrink_test::on_host, .split = split, .measure = true, .shrink_on_out_of_memory = true}};
    for (int call = 0; call < 12; ++call) shrink_test::check_doubled(model(x), x);
    const auto learnt = model.report();
    CHECK(learnt.failed_calls() >= 2);
    CHECK(learnt.failed_calls() <= 6);  // log2 of 2,000 over 62, and one
    for (int call = 0; call < 100; ++call) shrink_test::check_doubled(model(x), x);
    const auto after = model.report();
    CHECK(after.failed_calls() == learnt.failed_calls());
    CHECK(after.devices()[0].most_rows == 0);
    CHECK(after.devices()[1].most_rows <= 62);
    CHECK(after.devices()[1].most_rows > 30);
    CHECK(after.devices()[1].rows > times_faster * after.devices()[0].rows);
  };
  SUBCASE("MeasuredSplit") { check(fanout::MeasuredSplit{}, 6); }
  SUBCASE("DealtSplit") { check(fanout::DealtSplit{}, 1); }
  SUBCASE("both") { check(fanout::DealtSplit{fanout::MeasuredSplit{}}, 6); }
}

TEST_CASE("a single row that does not fit is an error that says so, and the model works afterwards") {
  std::vector<SimulatedDeviceOptions> options(1);
  options[0].memory = 40;
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  CHECK(says(message_of<ReplicaError>([&] { model(shrink_test::ascending(64, 4)); }),
             "not made again with fewer rows at a time, since a single row does not fit"));
  CHECK(model.report().failed_calls() == 7);
  const auto narrow = shrink_test::ascending(64, 1);  // three of these fit
  shrink_test::check_doubled(model(narrow), narrow);

  const ParallelModel unmeasured{shrink_test::Doubles{}, simulated_devices(options),
                                 Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
  shrink_test::check_doubled(unmeasured(narrow), narrow);
}

TEST_CASE("without the option, and where calls cannot be made again, running out of memory is an error") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].memory = 1000;
  const auto x = shrink_test::ascending(100, 4);
  SUBCASE("without the option") {
    const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host}};
    for (int call = 0; call < 3; ++call) {
      try {
        model(x);
        FAIL("the memory was enough");
      } catch (const OutOfMemory&) {  // while its inputs were copied
      } catch (const ReplicaError& error) {
        CHECK(error.get_if<OutOfMemory>() != nullptr);
      }
    }
  }
  SUBCASE("a forward that is not const") {
    options[1].memory = 2000;
    const ParallelModel model{shrink_test::Counts{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
    CHECK(says(message_of<ReplicaError>([&] { model(x); }),
               "not made again with fewer rows at a time, since forward is not const"));
  }
}

TEST_CASE("an asynchronous call is made again, too, and the next ones know what fits") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].memory = 1500;
  const auto x = shrink_test::ascending(100, 4);
  const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                            Options{.output = shrink_test::on_host, .measure = true, .shrink_on_out_of_memory = true}};
  auto first = model.async(x);
  auto second = model.async(shrink_test::ascending(100, 4));
  shrink_test::check_doubled(first.get(), x);
  const std::size_t failed = model.report().failed_calls();
  CHECK(failed >= 1);
  shrink_test::check_doubled(second.get(), x);
  shrink_test::check_doubled(model(x), x);
  CHECK(model.report().failed_calls() == failed);
}

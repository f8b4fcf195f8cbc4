// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made again with fewer rows at a time on a device that ran out of memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
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

/// Needs 400 bytes for each row.
struct ChangesAndNeedsScratch {
  std::size_t forward(Context auto& ctx, View<const float, 1> x) {
    return fanout::empty<float>(ctx, 100 * x.size()).size();
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

namespace shrink_test {

/// Uses 8 bytes for each row: the input and the output. `fails_at` is a row that throws.
struct Copies {
  std::size_t fails_at = SIZE_MAX;

  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (ctx.rows().first + i == fails_at) throw std::domain_error("a bad row");
      y[i] = x[i];
    }
    return y;
  }
};

}  // namespace shrink_test

TEST_CASE("a call of a sharded argument is not made again, since its plan is that of the argument") {
  const auto devices = simulated_devices({{.memory = 100'000}, {.memory = 100'000}});
  const ParallelModel first{[](Context auto& ctx, View<const float, 1> x) {
                              auto y = fanout::output<float>(ctx);
                              std::copy(x.begin(), x.end(), y.begin());
                              return fanout::sharded(y);
                            },
                            devices};
  int forwards = 0;
  const ParallelModel second{[&forwards](Context auto& ctx, View<const float, 1> x) {
                               ++forwards;
                               return fanout::psum(fanout::empty<float>(ctx, 20 * x.size()).size());
                             },
                             devices, Options{.shrink_on_out_of_memory = true}};
  const auto kept = first(Tensor<float, 1>(4000));
  const std::string message = message_of<ReplicaError>([&] { static_cast<void>(second(kept)); });
  CHECK(says(message, "not made again with fewer rows at a time, since an argument is sharded"));
  CHECK(forwards == 2);
}

TEST_CASE("results that cannot be gathered are an error that says why the call is not made again") {
  const auto check = [](const auto& forward, std::size_t main_memory) {
    const auto x = shrink_test::ascending(200, 4);
    const ParallelModel first{[](Context auto& ctx, View<const float, 2> rows) {
                                auto y = fanout::output<float>(ctx, rows.extent(1));
                                std::copy(rows.begin(), rows.end(), y.begin());
                                return fanout::sharded(y);
                              },
                              simulated_devices(std::vector<SimulatedDeviceOptions>(2))};
    const auto kept = first(x);
    for (const bool shrinks : {true, false}) {
      CAPTURE(shrinks);
      std::vector<SimulatedDeviceOptions> options(2);
      options[0].memory = main_memory;
      const ParallelModel model{forward, simulated_devices(options), Options{.shrink_on_out_of_memory = shrinks}};
      for (const std::string& message :
           {message_of<OutOfMemory>([&] { static_cast<void>(model(kept)); }),
            message_of<OutOfMemory>([&] { static_cast<void>(model.async(kept).get()); })}) {
        CHECK(says(message, "out of memory of sim:"));
        const bool says_why = message.ends_with(
            "not made again with fewer rows at a time, since the results do not fit into the memory for them");
        CHECK(says_why == shrinks);
      }
    }
  };
  check([](Context auto& ctx, View<const float, 2> x) { return fanout::empty<float>(ctx, x.extent(0), 40); }, 20'000);
  check(
      [](Context auto& ctx, View<const float, 2> x) {
        return fanout::psum(Tensor<float, 2>(fanout::empty<float>(ctx, x.extent(0), 40)));
      },
      20'000);
}

TEST_CASE("an exception of forward ends a dealt call that has a limit") {
  shrink_test::Copies copies;
  const ParallelModel plain{copies, simulated_devices({{.memory = 2'000}, {.rows_per_second = 4e6}}),
                            Options{.output = shrink_test::on_host,
                                    .split = fanout::DealtSplit<>{},
                                    .measure = true,
                                    .shrink_on_out_of_memory = true}};
  copies.fails_at = 600;
  const ParallelModel failing{copies, simulated_devices({{.memory = 2'000}, {.rows_per_second = 4e6}}),
                              Options{.output = shrink_test::on_host,
                                      .split = fanout::DealtSplit<>{},
                                      .measure = true,
                                      .shrink_on_out_of_memory = true}};
  const Tensor<float, 1> x(4000);
  CHECK(plain(x).size() == 4000);
  try {
    static_cast<void>(failing(x));
    FAIL("it must throw");
  } catch (const ReplicaError& error) {
    CHECK(error.get_if<std::domain_error>() != nullptr);
  }
  CHECK(failing.report().devices()[0].most_rows == plain.report().devices()[0].most_rows);
  CHECK(failing.report().failed_calls() == 1);  // it was not made again
}

TEST_CASE("blocks that share the memory of a device are first run in turns") {
  for (const int devices : {1, 2}) {
    std::vector<SimulatedDeviceOptions> options(static_cast<std::size_t>(devices));
    options[0].memory = 5'000;  // of 625 rows
    const ParallelModel model{shrink_test::Copies{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host,
                                      .split = fanout::DealtSplit<>{},
                                      .measure = true,
                                      .shrink_on_out_of_memory = true}};
    CHECK(model(Tensor<float, 1>(4000)).size() == 4000);
    CHECK(model.report().devices()[0].most_rows >= 312);
  }
}

TEST_CASE("a device that has a limit also runs the blocks of a device that has failed") {
  for (const bool main_has_limit : {true, false}) {
    std::vector<SimulatedDeviceOptions> options(2);
    options[main_has_limit ? 0 : 1].memory = 3000;
    options[main_has_limit ? 1 : 0].fail_at = 100;
    options[main_has_limit ? 1 : 0].failures = 3;
    const ParallelModel model{shrink_test::Doubles{}, simulated_devices(options),
                              Options{.output = shrink_test::on_host,
                                      .split = fanout::DealtSplit<>{},
                                      .measure = true,
                                      .retry = fanout::Retry{.times = 2},
                                      .shrink_on_out_of_memory = true}};
    const auto x = shrink_test::ascending(1000, 4);
    for (int call = 0; call < 20; ++call) shrink_test::check_doubled(model(x), x);
    CHECK(model.report().devices()[main_has_limit ? 0 : 1].most_rows > 0);
    CHECK(model.report().devices()[main_has_limit ? 1 : 0].failures > 0);
  }
}

TEST_CASE("on threads a device that has failed runs its blocks itself if they are too large for the other one") {
  std::atomic<bool> fails{false}, other_is_done{false};
  std::atomic<int> runs{0};
  const auto blocks = [](std::size_t rows, std::size_t devices) {
    if (rows != 18) return fanout::EvenSplit{}(rows, devices);
    fanout::Plan plan{{{0, 8}, 0}, {{8, 10}, 1}, {{10, 16}, 0}, {{16, 18}, 0}};
    plan.deal();
    return plan;
  };
  const ParallelModel model{[&](Context auto& ctx, View<const float, 1> x) {
                              ++runs;
                              if (ctx.device().id().index == 1) {
                                if (x.size() > 2) throw OutOfMemory("more than two rows");
                                if (ctx.rank() == 3) other_is_done = true;
                              } else if (fails && ctx.rank() == 0) {
                                for (int i = 0; i < 2000 && !other_is_done; ++i) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                }
                                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                throw fanout::DeviceError("lost");
                              }
                              return fanout::psum(x.size());
                            },
                            fanout::host_devices(2),
                            Options{.split = blocks, .measure = true, .shrink_on_out_of_memory = true}};
  CHECK(model(Tensor<float, 1>(8)) == 8);  // learns that two rows fit
  CHECK(model.report().devices()[1].most_rows == 2);
  fails = true;
  runs = 0;
  try {
    static_cast<void>(model(Tensor<float, 1>(18)));
    FAIL("it must throw");
  } catch (const ReplicaError& error) {
    CHECK(error.failures().size() == 1);
  }
  CHECK(runs == 4);
}

TEST_CASE("the error says why a call is not made again, also if memory runs out while inputs are copied") {
  const auto message = [](auto model, std::size_t rows, std::size_t memory) {
    const ParallelModel parallel{std::move(model), simulated_devices({{.memory = memory}}),
                                 Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
    return message_of<ReplicaError>([&] { static_cast<void>(parallel(Tensor<float, 1>(rows))); });
  };
  struct Counts {
    std::size_t calls = 0;
    auto forward(View<const float, 1> x) { return fanout::psum(x.size() + 0 * ++calls); }
  };
  CHECK(says(message(Counts{}, 4000, 1000), "since forward is not const, or may change its replica"));
  CHECK(says(message(shrink_test::ChangesAndNeedsScratch{}, 10, 1000), "since forward is not const"));
  CHECK(says(message([](View<const float, 1> x) { return fanout::psum(x.size()); }, 4, 3),
             "since a single row does not fit"));
  const auto maybe = [](Context auto& ctx, View<const float, 1> x) {
    auto y = fanout::output<float>(ctx);
    std::copy(x.begin(), x.end(), y.begin());
    return std::optional<Tensor<float, 1>>(y);
  };
  CHECK(says(message(maybe, 4000, 5000), "since results of this type stay in the memory of the device"));
}

TEST_CASE("only the device whose memory is full gets fewer rows") {
  const auto devices = simulated_devices({{.memory = 100'000}, {}});
  const ParallelModel model{shrink_test::Copies{}, devices, Options{.measure = true, .shrink_on_out_of_memory = true}};
  const Tensor<float, 1> x(8000);
  CHECK(model(x).size() == 8000);
  {
    const auto held = fanout::to(Tensor<float, 1>(15'000), devices[0]);
    CHECK(model(x).size() == 8000);
  }
  CHECK(model(x).size() == 8000);
  CHECK(model.report().devices()[0].most_rows > 0);
  CHECK(model.report().devices()[1].most_rows == 0);
  const auto failed = model.report().failed_calls();
  SUBCASE("until it is readmitted") {
    const_cast<std::remove_const_t<decltype(model)>&>(model).readmit(0);
    CHECK(model.report().devices()[0].most_rows == 0);
  }
  CHECK(model(x).size() == 8000);
  CHECK(model.report().failed_calls() == failed);
}

TEST_CASE("all tries of a call are one call: it has one number and one deadline") {
  const auto draw = [](std::size_t memory) {
    const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                                auto y = fanout::output<double>(ctx);
                                for (std::size_t i = 0; i < x.size(); ++i) y[i] = ctx.random(i).uniform();
                                return y;
                              },
                              simulated_devices({{.memory = memory}}),
                              Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
    std::vector<double> drawn;
    for (int i = 0; i < 3; ++i) {
      const auto y = model(Tensor<float, 1>(100));
      drawn.insert(drawn.end(), y.begin(), y.end());
    }
    return drawn;
  };
  CHECK(draw(600) == draw(100'000));

  const ParallelModel slow{
      [](Context auto& ctx, View<const float, 1> x) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return fanout::psum(fanout::empty<float>(ctx, x.size()).size());
      },
      simulated_devices({{.memory = 1'000}}),
      Options{
          .output = shrink_test::on_host, .deadline = std::chrono::milliseconds(90), .shrink_on_out_of_memory = true}};
  CHECK_THROWS_AS(static_cast<void>(slow(Tensor<float, 1>(1000))), fanout::Timeout);
}

TEST_CASE("an asynchronous call behind one that changes the replicas is not made again, and the error says so") {
  struct Counts {
    int calls = 0;
    int forward(View<const float, 1>) const { return calls; }
    int forward(View<const float, 1>, int) { return ++calls; }
  };
  const ParallelModel model{fanout::factory([] { return Counts{}; }), simulated_devices({{.memory = 1'000}}),
                            Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = true}};
  auto changes = model.async(Tensor<float, 1>(10), 1);
  auto reads = model.async(Tensor<float, 1>(4000));
  static_cast<void>(changes.get());
  CHECK(says(message_of<ReplicaError>([&] { static_cast<void>(reads.get()); }),
             "not made again with fewer rows at a time, since the call was asynchronous"));
}

TEST_CASE("an asynchronous call that one task makes, since fields are combined after it, is made again, too") {
  struct Combines {
    fanout::Sum<int> calls{};
    int forward(View<const float, 1>) const { return 0; }
    int forward(View<const float, 1>, int) { return static_cast<int>(calls = 1); }
  };
  const ParallelModel model{
      Combines{}, simulated_devices({{.memory = 1'000}, {.fail_at = 2}}),
      Options{.output = shrink_test::on_host, .retry = fanout::Retry{.times = 1}, .shrink_on_out_of_memory = true}};
  auto changes = model.async(Tensor<float, 1>(10), 1);
  auto reads = model.async(Tensor<float, 1>(10));
  auto more = model.async(Tensor<float, 1>(4000));
  static_cast<void>(changes.get());
  CHECK(reads.get().size() == 2);
  CHECK(more.get().size() > 2);
}

TEST_CASE("a call that cannot be planned takes no number") {
  const auto draw = [](bool shrinks) {
    const ParallelModel model{[](Context auto& ctx, View<const float, 1>, View<const float, 1>) {
                                return std::vector<double>{ctx.random(0).uniform()};
                              },
                              simulated_devices({{}}),
                              Options{.output = shrink_test::on_host, .shrink_on_out_of_memory = shrinks}};
    const Tensor<float, 1> x(4);
    CHECK_THROWS_AS(static_cast<void>(model(x, Tensor<float, 1>(5))), fanout::ShapeMismatch);
    return model(x, x);
  };
  CHECK(draw(true) == draw(false));
}

TEST_CASE("results that do not fit into the main device's memory are an error that says so, and limit no later call") {
  for (const std::size_t count : {1U, 2U}) {
    CAPTURE(count);
    std::vector<SimulatedDeviceOptions> options(count);
    options[0].memory = 100'000;
    const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                                fanout::empty<float>(ctx, x.size());
                                return std::tuple(fanout::output<float>(ctx, 64), fanout::psum(1));
                              },
                              simulated_devices(options), Options{.measure = true, .shrink_on_out_of_memory = true}};
    for (int i = 0; i < 3; ++i) {
      const std::string text = message_of<ReplicaError>([&] { static_cast<void>(model(Tensor<float, 1>(1000))); });
      CHECK(says(text, "since the results do not fit into the memory for them"));
      CHECK(text.find("single row") == std::string::npos);
    }
    CHECK(model.report().devices()[0].most_rows == 0);
    const auto [y, shards] = model(Tensor<float, 1>(200));
    CHECK(static_cast<std::size_t>(shards) == count);
  }
}

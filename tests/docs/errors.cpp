// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

// [singular]
/// Thrown for a row that has no square root. Says which one, by its number in the whole batch.
struct NegativeRow : std::domain_error {
  explicit NegativeRow(std::size_t number) : std::domain_error("a negative number"), row(number) {}
  std::size_t row;
};

struct Roots {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto roots = fanout::output<double>(ctx);
    for (const auto [local, global] : ctx.rows().enumerate()) {
      if (x[local] < 0) throw NegativeRow(global);
      roots[local] = std::sqrt(x[local]);
    }
    return roots;
  }
};
// [/singular]

}  // namespace

TEST_CASE("the exceptions of all shards are told with their devices and rows") {
  std::ostringstream log;
  const fanout::ParallelModel model{Roots(), fanout::host_devices(3)};
  const std::vector<double> batch{4, -1, 9, 16, -25, 36};
  // [catch]
  try {
    const auto roots = model(batch);
  } catch (const fanout::ReplicaError& error) {
    for (const fanout::Failure& failure : error.failures()) {
      log << "rows " << to_string(failure.rows) << " on " << to_string(failure.device) << " failed\n";
    }
    if (const auto* negative = error.get_if<NegativeRow>()) log << "the first is row " << negative->row << '\n';
  } catch (const fanout::Error& error) {  // the call itself: shapes, devices, memory
    log << error.what() << '\n';
  }
  // [/catch]
  CHECK(log.str() == "rows [0, 2) on host:0 failed\nrows [4, 6) on host:2 failed\nthe first is row 1\n");
  CHECK(model(std::vector{4.0, 9.0})[1] == 3);
}

TEST_CASE("memory that ran out is one of two exceptions") {
  const auto tell = [](const auto& call) {
    std::string told;
    // [memory]
    try {
      call();
    } catch (const fanout::OutOfMemory& error) {  // of a device, or of the host for arrays
      told = error.what();
    } catch (const std::bad_alloc&) {  // of the host, for what the call or the standard library allocates
      told = "no memory";
    } catch (const fanout::ReplicaError& error) {  // in a shard
      const bool ran_out = error.get_if<fanout::OutOfMemory>() != nullptr || error.get_if<std::bad_alloc>() != nullptr;
      told = ran_out ? "no memory in a shard" : error.what();
    }
    // [/memory]
    return told;
  };
  const std::vector<double> batch(4);
  const auto thrower = [&](const auto& exception) {
    const fanout::ParallelModel model{[&](fanout::View<const double, 1>) -> int { throw exception; },
                                      fanout::host_devices(2)};
    model(batch);
  };
  CHECK(tell([&] { thrower(std::bad_alloc()); }) == "no memory in a shard");
  CHECK(tell([&] { thrower(fanout::OutOfMemory("full")); }) == "no memory in a shard");
  CHECK(tell([&] { thrower(std::runtime_error("other")); }).find("other") != std::string::npos);
  CHECK(tell([] { throw fanout::OutOfMemory("full"); }) == "full");
  CHECK(tell([] { throw std::bad_alloc(); }) == "no memory");
}

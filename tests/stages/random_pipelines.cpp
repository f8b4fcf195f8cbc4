// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
//
// Pipelines of random devices, micro-batches and rows, some of which throw, called by several threads at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>

namespace {

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::output;
using fanout::ParallelModel;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::stage;
using fanout::Tensor;
using fanout::View;
using namespace fanout::literals;

constexpr std::size_t no_row = 1'000;

/// Adds random numbers, gives its rows under two keys, and throws in one row.
struct First {
  std::size_t bad_row = no_row;
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto y = output<double>(ctx);
    auto skip = output<double>(ctx);
    for (std::size_t row = 0; row < x.size(); ++row) {
      if (ctx.rows().first + row == bad_row) throw std::runtime_error("first");
      auto random = ctx.random(row);
      y(row) = x(row) + random.uniform();
      skip(row) = 3 * x(row);
    }
    return fanout::dict("y"_k = y, "skip"_k = skip);
  }
};

struct Second {
  std::size_t bad_row = no_row;
  auto forward(Context auto& ctx, View<const double, 1> y) const {
    auto wide = output<double>(ctx, 2);
    for (std::size_t row = 0; row < y.size(); ++row) {
      if (ctx.rows().first + row == bad_row) throw std::runtime_error("second");
      wide(row, 0) = y(row);
      wide(row, 1) = -y(row);
    }
    return fanout::dict("wide"_k = wide);
  }
};

struct Third {
  std::size_t bad_row = no_row;
  auto forward(Context auto& ctx, View<const double, 2> wide, View<const double, 1> skip) const {
    auto z = output<double>(ctx);
    std::size_t count = 0;
    double most = -1e9;
    for (std::size_t row = 0; row < skip.size(); ++row, ++count) {
      if (ctx.rows().first + row == bad_row) throw std::runtime_error("third");
      z(row) = wide(row, 0) * wide(row, 1) + skip(row);
      most = std::max(most, z(row));
    }
    return std::tuple{z, fanout::psum(count), fanout::pmax(most)};
  }
};

class Case {
 public:
  explicit Case(unsigned seed) : random_(seed), rows_(below(41)), seed_(seed) {
    for (std::size_t& row : bad_rows_) row = below(8) == 0 ? below(45) : no_row;
  }

  /// Returns false if a call gave something else than the stages alone.
  bool run() {
    const int threads = below(3) == 0 ? 3 : 1;
    switch (below(4)) {
      case 0:
        return run_on(threads, host_devices(one_to(3)), host_devices(one_to(3)), host_devices(one_to(3)));
      case 1:
        return run_on(threads, host_devices(1), host_devices(1), host_devices(1));
      case 2:
        return run_on(1, simulated(), host_devices(one_to(2)), simulated());
      default:
        return run_on(threads, host_devices(one_to(3)), simulated(), host_devices(2));
    }
  }

 private:
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }
  int one_to(std::size_t most) { return static_cast<int>(1 + below(most)); }
  fanout::DeviceSet<fanout::SimulatedDevice> simulated() {
    return fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(1 + below(2)));
  }

  template <class A, class B, class C>
  bool run_on(int threads, const A& a, const B& b, const C& c) {
    const Options options{.seed = seed_};
    const bool hurries = below(8) == 0;
    const bool asynchronous = below(3) == 0;
    PipelineOptions how{.micro_batches = below(10), .in_flight = below(6)};
    if (hurries) how.deadline = std::chrono::microseconds(below(200));
    const Pipeline net{how, stage(First{bad_rows_[0]}, a, options), stage(Second{bad_rows_[1]}, b).takes("y"_k),
                       stage(Third{bad_rows_[2]}, c).takes("wide"_k, "skip"_k)};
    Tensor<double, 1> x(rows_);
    for (std::size_t i = 0; i < rows_; ++i) x(i) = static_cast<double>(below(100));
    const bool throws = std::ranges::any_of(bad_rows_, [this](std::size_t row) { return row < rows_; });
    std::atomic<bool> right{true};
    const auto check = [&](int call, const auto& result_of) {
      try {
        const auto [z, count, most] = result_of();
        if (throws || count != rows_ || z.size() != rows_) right = false;
        // With several threads, it is open which call has which random numbers.
        if (threads == 1 && !equals_alone(x, call, z, most)) right = false;
      } catch (const fanout::StageError& error) {
        const bool is_late = hurries && error.get_if<fanout::Timeout>() != nullptr;
        if (!is_late && (!throws || bad_rows_[error.stage()] >= rows_)) right = false;
      }
    };
    std::vector<std::thread> callers;
    for (int i = 0; i < threads; ++i) {
      callers.emplace_back([&] {
        if (asynchronous) {
          std::vector<decltype(net.async(x))> pending;
          for (int call = 0; call < 3; ++call) pending.push_back(net.async(x));
          for (const int call : {1, 0, 2}) {
            check(call, [&] { return pending[static_cast<std::size_t>(call)].get(); });
          }
        } else {
          for (int call = 0; call < 3; ++call) check(call, [&] { return net(x); });
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    return right;
  }

  bool equals_alone(const Tensor<double, 1>& x, int call, const Tensor<double, 1>& z, double most) const {
    const ParallelModel first{First{}, host_devices(1), Options{.seed = seed_}};
    const ParallelModel second{Second{}, host_devices(1)};
    const ParallelModel third{Third{}, host_devices(1)};
    for (int before = 0; before < call; ++before) first(x);
    const auto given = first(x);
    const auto [wanted, wanted_count, wanted_most] = third(second(given["y"_k])["wide"_k], given["skip"_k]);
    return std::equal(z.data(), z.data() + z.size(), wanted.data()) && most == wanted_most;
  }

  std::mt19937 random_;
  std::size_t rows_;
  std::size_t bad_rows_[3];
  unsigned seed_;
};

}  // namespace

TEST_CASE("random pipelines") {
  const char* const wanted = std::getenv("FANOUT_TEST_PIPELINES");
  const unsigned cases = wanted == nullptr ? 200 : static_cast<unsigned>(std::atoi(wanted));
  for (unsigned seed = 0; seed < cases; ++seed) {
    CAPTURE(seed);
    CHECK(Case(seed).run());
  }
}

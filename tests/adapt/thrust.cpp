// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/adapt/thrust.hpp>
#include <fanout/fanout.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

namespace {

/// Which thread an algorithm runs in.
struct RememberThread {
  std::set<std::thread::id>* threads;
  double operator()(double x) const {
    threads->insert(std::this_thread::get_id());
    return -x;
  }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    std::set<std::thread::id> threads;
    const auto policy = fanout::thrust_policy(ctx);
    thrust::transform(policy, x.data(), x.data() + x.size(), y.data(), RememberThread{&threads});
    thrust::sort(policy, y.data(), y.data() + y.size());
    const double sum = thrust::reduce(policy, y.data(), y.data() + y.size(), 0.0, std::plus<double>());
    const bool alone = threads == std::set{std::this_thread::get_id()};
    return std::tuple{y, fanout::psum(sum), alone};
  }
};

}  // namespace

TEST_CASE("Thrust's algorithms run in the thread of the shard, on the shard's rows") {
  const fanout::ParallelModel model{Model{}, fanout::host_devices(2)};
  const auto [y, sum, alone] = model(std::vector{1.0, 3.0, 2.0, 4.0, 6.0, 5.0});
  const std::vector<double> sorted_by_shard{-3, -2, -1, -6, -5, -4};
  for (std::size_t i = 0; i < 6; ++i) CHECK(y[i] == sorted_by_shard[i]);
  CHECK(sum == -21);
  CHECK(alone[0]);
  CHECK(alone[1]);
}

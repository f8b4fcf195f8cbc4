// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// thrust_policy() in a .cu, on cores and on GPUs by the same code.
#include <doctest/doctest.h>

#include <cstddef>
#include <tuple>
#include <vector>

#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <fanout/adapt/thrust.cuh>
#include <fanout/fanout.hpp>

#include "support/skip.hpp"

namespace {

struct Negate {
  FANOUT_HOST_DEVICE double operator()(double x) const { return -x; }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    const auto policy = fanout::thrust_policy(ctx);
    thrust::transform(policy, x.data(), x.data() + x.size(), y.data(), Negate{});
    thrust::sort(policy, y.data(), y.data() + y.size());  // takes temporary memory
    const double sum = thrust::reduce(policy, y.data(), y.data() + y.size(), 0.0, thrust::plus<double>());
    return std::tuple{y, fanout::psum(sum)};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("Thrust's algorithms run in order on the device of the context", D, fanout::HostDevice,
                   fanout::CudaDevice) {
  if (D::visible().empty()) return fanout_test::skip("no CUDA device");
  const fanout::ParallelModel<Model, fanout::FirstAvailable<D>> model{Model{}, fanout::FirstAvailable<D>{}};
  std::vector<double> x;
  for (std::size_t i = 0; i < 10'000; ++i) x.push_back(static_cast<double>(i * 7919 % 10'000));
  const auto [y, sum] = fanout::to_host(model(x));
  CHECK(sum == -10'000.0 * 9'999 / 2);
  REQUIRE(y.size() == 10'000);
  std::size_t unsorted = 0;
  for (std::size_t i = 1; i < y.size(); ++i) unsorted += y[i - 1] <= y[i] ? 0U : 1U;
  CHECK(unsorted < fanout::FirstAvailable<D>{}.select().size());  // sorted within each shard
}

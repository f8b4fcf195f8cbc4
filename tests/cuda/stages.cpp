// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages on GPUs.
#include <doctest/doctest.h>

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/context/launch.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/memory_info.hpp>
#include <fanout/stages.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "cuda/stand_in/stand_in.h"

namespace {

using namespace fanout::literals;
using fanout::Context;
using fanout::cuda_devices;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::stage;
using fanout::Tensor;
using fanout::View;

/// Multiplies its rows by a weight that each GPU has.
struct Scaled {
  Tensor<double, 1> weight;
  auto forward(Context auto& ctx, View<const double, 2> x) const {
    auto y = fanout::output<double>(ctx, x.extent(1));
    const View<const double, 1> by = weight;
    fanout::launch(ctx, x.size(),
                   [x, by, to = View<double, 2>(y)](std::size_t i) { to.data()[i] = by[0] * x.data()[i]; });
    return y;
  }
};

Scaled scaled(double by) {
  Scaled model{Tensor<double, 1>(1)};
  model.weight[0] = by;
  return model;
}

Tensor<double, 2> numbered(std::size_t rows) {
  Tensor<double, 2> x({rows, 3});
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = 0.1 * static_cast<double>(i);
  return x;
}

}  // namespace

TEST_CASE("stages on GPUs: values go from GPU to GPU") {
  if (!fanout_test::has_stand_in(2)) return;
  const Pipeline net{PipelineOptions{.micro_batches = 5}, stage(scaled(2), cuda_devices({0})),
                     stage(scaled(0.3), cuda_devices({1})), stage(scaled(7), fanout::host_devices(1))};
  for (const std::size_t rows : std::vector<std::size_t>{0, 3, 40}) {
    CAPTURE(rows);
    const auto x = numbered(rows);
    net(x);
    fanout_test::wait_for_all_gpus();
    stand_in_forget_counts();
    const auto y = net(x);
    const long parts = rows == 0 ? 0 : rows < 5 ? static_cast<long>(rows) : 5;
    CHECK(stand_in_copies("h2d pinned") + stand_in_copies("h2d pageable") == parts);
    CHECK(stand_in_copies("d2h pinned") + stand_in_copies("d2h pageable") == parts);
    CHECK(stand_in_copies("peer direct") + stand_in_copies("peer staged") == parts);
    REQUIRE(y.extents() == x.extents());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.data()[i] == 7 * (0.3 * (2 * x.data()[i])));
  }
}

TEST_CASE("stages on GPUs: different numbers of them, hosts between them, and two stages on one GPU") {
  if (!fanout_test::has_stand_in(1)) return;
  const int gpus = fanout::cuda::detail::count_gpus().count;
  const auto x = numbered(31);
  std::vector<int> all;
  for (int i = 0; i < gpus; ++i) all.push_back(i);
  const auto every = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  const Pipeline net{
      PipelineOptions{.micro_batches = 4},
      stage(scaled(2), every),
      stage(scaled(0.3), cuda_devices({0})),
      stage(scaled(5), fanout::host_devices(2)),
      stage(scaled(7), cuda_devices({0})),
      stage(scaled(0.7), every, fanout::Options{.output = fanout::DeviceId{.kind = "host", .index = 0}})};
  for (int call = 0; call < 3; ++call) {
    const auto y = to_host(net(x));
    REQUIRE(y.extents() == x.extents());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.data()[i] == 0.7 * (7 * (5 * (0.3 * (2 * x.data()[i])))));
  }
}

namespace {

/// y = weight * x, trained: what it saves stays on the GPU.
struct TrainedScale {
  double weight = 1;
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), [x, by = weight, to = View<double, 1>(y)](std::size_t i) { to[i] = by * x[i]; });
    return fanout::saved(y, x);
  }
  auto backward(Context auto& ctx, const auto& x, View<const double, 1> dy) const {
    auto dx = fanout::output<double>(ctx);
    const auto gradient = fanout::empty<double>(ctx, 1);
    const View<const double, 1> saved_x = x;
    fanout::launch(ctx, dy.size(), [dy, by = weight, to = View<double, 1>(dx)](std::size_t i) { to[i] = by * dy[i]; });
    fanout::launch(ctx, 1, [saved_x, dy, gradient](std::size_t) {
      gradient[0] = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) gradient[0] += saved_x[i] * dy[i];
    });
    return std::pair{dx, fanout::psum(gradient)};
  }
};

/// y - t, on the device. The loss is the sum of squares.
const auto distance = [](Context auto& ctx, View<const double, 1> y, View<const double, 1> t) {
  const auto dy = fanout::empty<double>(ctx, y.size());
  const auto sum = fanout::empty<double>(ctx, 1);
  fanout::launch(ctx, 1, [y, t, dy, sum](std::size_t) {
    sum[0] = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      dy[i] = y[i] - t[i];
      sum[0] += dy[i] * dy[i];
    }
  });
  return std::pair{fanout::psum(sum), dy};
};

}  // namespace

TEST_CASE("stages on GPUs: training") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto all = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  Tensor<double, 1> x(23);
  Tensor<double, 1> targets(23);
  double wanted_loss = 0;
  double wanted = 0;
  for (std::size_t i = 0; i < 23; ++i) {
    x(i) = static_cast<double>(i % 5);
    targets(i) = static_cast<double>(i % 3);
    const double off = 2 * (3 * (4 * x(i))) - targets(i);
    wanted_loss += off * off;
    wanted += off * 2 * 3 * 4 * x(i);
  }
  const Pipeline net{PipelineOptions{.micro_batches = 4}, stage(TrainedScale{2}, all),
                     stage(TrainedScale{3}, fanout::host_devices(2)), stage(TrainedScale{4}, cuda_devices({0}))};
  for (int step = 0; step < 3; ++step) {
    const auto [found, gradients] = net.train(x, targets, distance);
    const auto& [first, second, third] = gradients;
    CHECK(to_host(found)[0] == wanted_loss);
    CHECK(to_host(first)[0] == wanted / 2);
    CHECK(to_host(second)[0] == wanted / 3);
    CHECK(to_host(third)[0] == wanted / 4);
  }
}

namespace {

/// TrainedScale, whose backward is split.
struct SplitScale {
  TrainedScale layer;

  auto forward(Context auto& ctx, View<const double, 1> x) const { return layer.forward(ctx, x); }
  auto backward_input(Context auto& ctx, const auto& x, View<const double, 1> dy) const {
    return std::pair{layer.backward(ctx, x, dy).first, std::pair{x, dy}};
  }
  auto backward_weights(Context auto& ctx, const auto& kept) const {
    return layer.backward(ctx, kept.first, View<const double, 1>(kept.second)).second;
  }
};

}  // namespace

TEST_CASE("stages on GPUs: each schedule gives the same bits") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto all = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  Tensor<double, 1> x(23);
  for (std::size_t i = 0; i < 23; ++i) x(i) = 0.1 * static_cast<double>(i % 7);
  const auto train = [&](auto first, auto second, auto third, const auto& schedule) {
    const Pipeline net{PipelineOptions{.micro_batches = 6, .schedule = schedule}, stage(first, all),
                       stage(second, fanout::host_devices(2)), stage(third, cuda_devices({0}))};
    const auto [loss, gradients] = net.train(x, x, distance);
    const auto& [a, b, c] = gradients;
    return std::vector<double>{to_host(loss)[0], to_host(a)[0], to_host(b)[0], to_host(c)[0]};
  };
  const auto wanted = train(TrainedScale{0.2}, TrainedScale{0.3}, TrainedScale{7}, fanout::OneForwardOneBackward{});
  CHECK(train(TrainedScale{0.2}, TrainedScale{0.3}, TrainedScale{7}, fanout::GPipe{}) == wanted);
  CHECK(train(SplitScale{{0.2}}, SplitScale{{0.3}}, SplitScale{{7}}, fanout::ZeroBubble{}) == wanted);
}

namespace {

/// x -> {a: 2 x, b: 3 x}
struct TrainedFork {
  TrainedScale first{2};
  TrainedScale second{3};

  auto forward(Context auto& ctx, View<const double, 1> x) const {
    return fanout::saved(fanout::dict("a"_k = first.forward(ctx, x).value, "b"_k = second.forward(ctx, x).value), x);
  }
  auto backward(Context auto& ctx, const auto& x, const auto& dy) const {
    auto [da, gradient_a] = first.backward(ctx, x, View<const double, 1>(dy["a"_k]));
    auto [db, gradient_b] = second.backward(ctx, x, View<const double, 1>(dy["b"_k]));
    return std::pair{da, std::tuple{gradient_a, gradient_b}};
  }
};
/// a -> {c: 4 a}
struct TrainedUnderKey {
  TrainedScale layer{4};

  auto forward(Context auto& ctx, View<const double, 1> a) const {
    return fanout::saved(fanout::dict("c"_k = layer.forward(ctx, a).value), a);
  }
  auto backward(Context auto& ctx, const auto& a, const auto& dy) const {
    return layer.backward(ctx, a, View<const double, 1>(dy["c"_k]));
  }
};
/// (c, a, b) -> c + a + b
struct TrainedSum {
  auto forward(Context auto& ctx, View<const double, 1> c, View<const double, 1> a, View<const double, 1> b) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, c.size(), [c, a, b, to = View<double, 1>(y)](std::size_t i) { to[i] = c[i] + a[i] + b[i]; });
    return fanout::saved(y, 0);
  }
  auto backward(int, View<const double, 1> dy) const {
    return std::pair{fanout::dict("a"_k = dy, "b"_k = dy, "c"_k = dy), fanout::psum(0)};
  }
};

}  // namespace

TEST_CASE("stages on GPUs: what comes back under a shared key is added") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto all = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  Tensor<double, 1> x(13);
  double wanted_loss = 0;
  double wanted = 0;  // of y = 4 a + a + b = 5 (2 x) + 3 x
  for (std::size_t i = 0; i < 13; ++i) {
    x(i) = static_cast<double>(i % 4);
    wanted_loss += 13 * x(i) * 13 * x(i);
    wanted += 13 * x(i) * x(i);
  }
  const auto check = [&](const auto& first, const auto& second, const auto& third) {
    const Pipeline net{PipelineOptions{.micro_batches = 3}, stage(TrainedFork{}, first),
                       stage(TrainedUnderKey{}, second).takes("a"_k),
                       stage(TrainedSum{}, third).takes("c"_k, "a"_k, "b"_k)};
    const auto [loss, gradients] = net.train(x, Tensor<double, 1>(13), distance);
    CHECK(to_host(loss)[0] == wanted_loss);
    const auto& [a, b] = std::get<0>(gradients);
    CHECK(to_host(a)[0] == 5 * wanted);
    CHECK(to_host(b)[0] == wanted);
    CHECK(to_host(std::get<1>(gradients))[0] == 2 * wanted);
  };
  check(all, cuda_devices({0}), all);
  check(cuda_devices({0}), fanout::host_devices(2), all);
  check(fanout::host_devices(1), all, cuda_devices({0}));
}

TEST_CASE("stages on GPUs: batches follow each other") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto all = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  const auto x = numbered(20);
  std::vector<fanout::Pending<Tensor<double, 2>>> pending;
  {
    const Pipeline net{PipelineOptions{.micro_batches = 3}, stage(scaled(2), all), stage(scaled(3), cuda_devices({0}))};
    for (int i = 0; i < 4; ++i) pending.push_back(net.async(x));
  }
  for (auto& each : pending) {
    const Tensor<double, 2> y = to_host(each.get());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y.data()[i] == 3 * (2 * x.data()[i]));
  }
}

namespace {

/// Each GPU has some rows of the weight.
struct SlicedScale {
  fanout::Slice<Tensor<double, 2>, 0> weight;  // [outputs, 1]
  auto forward(Context auto& ctx, View<const double, 1> x) const {
    const View<const double, 2> part = weight.part(ctx);
    const auto y = fanout::empty<double>(ctx, x.size() * part.extent(0));
    fanout::launch(ctx, y.size(),
                   [x, part, y](std::size_t i) { y[i] = x[i / part.extent(0)] * part(i % part.extent(0), 0); });
    return fanout::concat<1>(View<double, 2>(y.data(), {x.size(), part.extent(0)}, y.space()));
  }
};

}  // namespace

TEST_CASE("stages on GPUs: each has its part of a Slice") {
  if (!fanout_test::has_stand_in(1)) return;
  const auto all = fanout::DeviceSet<fanout::CudaDevice>(fanout::CudaDevice::visible());
  Tensor<double, 2> weight({9, 1});
  for (std::size_t i = 0; i < 9; ++i) weight(i, 0) = 0.1 * static_cast<double>(i);
  Tensor<double, 1> x(4);
  for (std::size_t i = 0; i < 4; ++i) x(i) = static_cast<double>(i + 1);
  const auto same = [](View<const double, 2> rows) { return Tensor<double, 2>(rows); };
  const fanout::Pipeline net{fanout::PipelineOptions{.micro_batches = 2}, fanout::stage(SlicedScale{weight}, all),
                             fanout::stage(same, fanout::host_devices(2))};
  const Tensor<double, 2> staged = net(x);
  fanout::ParallelModel model{SlicedScale{weight}, all};
  CHECK(staged == to_host(model(fanout::broadcast(x))));
  for (int again = 0; again < 2; ++again) {
    const Tensor<double, 2> y = to_host(model(fanout::broadcast(x)));
    REQUIRE(y.extents() == fanout::Extents<2>{4, 9});
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t o = 0; o < 9; ++o) CHECK(y(row, o) == x(row) * model.model().weight.whole()(o, 0));
    }
    model.update([](SlicedScale& scale) { scale.weight.whole()(8, 0) = 5; });
  }
}

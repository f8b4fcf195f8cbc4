// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fanout/observe.hpp>
#include <fanout/stages.hpp>

namespace {

// [models]
/// A layer of a network. Its weights need not fit on the device of another layer.
struct Dense {
  fanout::Tensor<float, 2> weight;  // [out, in]

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, weight.extent(0));  // [rows of the shard, out]
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t o = 0; o < weight.extent(0); ++o) {
        y(row, o) = 0;
        for (std::size_t i = 0; i < weight.extent(1); ++i) y(row, o) += weight(o, i) * x(row, i);
      }
    }
    return y;
  }
};
// [/models]

Dense dense(std::size_t out, std::size_t in) {
  Dense made{fanout::Tensor<float, 2>({out, in})};
  for (float& weight : made.weight) weight = 0.5F;
  return made;
}

TEST_CASE("documentation: stages") {
  const fanout::Tensor<float, 2> x({64, 16});
  // [first]
  // On GPUs: fanout::cuda_devices({0, 1}) and fanout::cuda_devices({2, 3}).
  fanout::Pipeline net{fanout::stage(dense(32, 16), fanout::host_devices(2)),
                       fanout::stage(dense(8, 32), fanout::host_devices(1))};
  fanout::Tensor<float, 2> y = net(x);  // what the second layer returns for what the first one returns
  // [/first]
  CHECK(y.extents() == fanout::Extents<2>{64, 8});

  fanout::Tensor<float, 2> more({3, 16});
  // [async]
  auto first = net.async(x);
  auto second = net.async(std::move(more));
  fanout::Tensor<float, 2> y_first = first.get();
  fanout::Tensor<float, 2> y_second = second.get();
  // [/async]
  CHECK(y_first.extent(0) == x.extent(0));
  CHECK(y_second.extent(0) == 3);

  // [options]
  const fanout::Pipeline fine{fanout::PipelineOptions{.micro_batches = 16, .in_flight = 4},
                              fanout::stage(dense(32, 16), fanout::host_devices(2)),
                              fanout::stage(dense(8, 32), fanout::host_devices(1))};
  // [/options]
  CHECK(fine(x).extents() == y.extents());

  // [update]
  net.stage<1>().update([](Dense& last) { last.weight(0, 0) = 2; });
  // [/update]
  CHECK(net(x).extents() == y.extents());
}

TEST_CASE("documentation: keys and errors of stages") {
  // [skip]
  using namespace fanout::literals;
  using Column = fanout::View<const float, 1>;
  const auto first = [](Column x) {
    return fanout::dict("x"_k = fanout::Tensor<float, 1>(x), "skip"_k = fanout::Tensor<float, 1>(x));
  };
  const auto middle = [](Column x) {
    fanout::Tensor<float, 1> y(x);
    for (float& value : y) value = std::sin(value);
    return fanout::dict("x"_k = std::move(y));
  };
  const auto last = [](Column x, Column skip) {
    fanout::Tensor<float, 1> y(x);
    for (std::size_t i = 0; i < y.size(); ++i) y(i) += skip(i);
    return y;
  };
  const auto devices = [] { return fanout::host_devices(1); };
  const fanout::Pipeline net{fanout::stage(first, devices()), fanout::stage(middle, devices()).takes("x"_k),
                             fanout::stage(last, devices()).takes("x"_k, "skip"_k)};
  // [/skip]
  fanout::Tensor<float, 1> x(10);
  x(9) = 1;
  CHECK(net(x)(9) == doctest::Approx(1 + std::sin(1.0)));

  const fanout::Pipeline bad{
      fanout::stage([](Column part) { return fanout::Tensor<float, 1>(part); }, devices()),
      fanout::stage([](Column) -> fanout::Tensor<float, 1> { throw std::runtime_error("no"); }, devices())};
  std::string text;
  // [error]
  try {
    bad(x);
  } catch (const fanout::StageError& error) {
    text = error.what();
    // stage 1 failed on micro-batch 0, rows [0, 2)
    //   Caught fanout::v0::ReplicaError: forward failed on 1 of 1 replica
    //     Caught std::runtime_error in replica 0 on device host:0, rows [0, 2): no
  }
  // [/error]
  CHECK(text ==
        "stage 1 failed on micro-batch 0, rows [0, 2)\n"
        "  Caught fanout::v0::ReplicaError: forward failed on 1 of 1 replica\n"
        "    Caught std::runtime_error in replica 0 on device host:0, rows [0, 2): no");
}

// [trained]
/// y = scale * x. It saves x for backward.
struct Scale {
  double scale = 1;

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    for (std::size_t row = 0; row < x.size(); ++row) y(row) = scale * x(row);
    return fanout::saved(y, x);
  }

  /// dy: the gradient of each row's loss by y. Returns that by x, and the mean of those by the field.
  auto backward(fanout::Context auto& ctx, const auto& x, fanout::View<const double, 1> dy) const {
    auto dx = fanout::output<double>(ctx);
    double gradient = 0;
    for (std::size_t row = 0; row < dy.size(); ++row) {
      dx(row) = scale * dy(row);
      gradient += x(row) * dy(row);
    }
    return std::pair{dx, fanout::pmean(gradient / static_cast<double>(dy.size()))};
  }
};
// [/trained]

using namespace fanout::literals;
// [keys back]
/// y = scale * x + skip. Both go back under their keys.
struct AddSkipped {
  Scale scaled;

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x, fanout::View<const double, 1> skip) const {
    auto [y, state] = scaled.forward(ctx, x);
    for (std::size_t row = 0; row < skip.size(); ++row) y(row) += skip(row);
    return fanout::saved(y, state);
  }
  auto backward(fanout::Context auto& ctx, const auto& x, fanout::View<const double, 1> dy) const {
    auto [dx, gradient] = scaled.backward(ctx, x, dy);
    return std::pair{fanout::dict("x"_k = dx, "skip"_k = dy), gradient};
  }
};
// [/keys back]

/// y = x, and x goes further.
struct Skip {
  auto forward(fanout::View<const double, 1> x) const {
    return fanout::saved(fanout::dict("x"_k = x, "skip"_k = x), 0);
  }
  auto backward(int, const auto& dy) const {
    fanout::Tensor<double, 1> dx(dy["x"_k]);
    for (std::size_t row = 0; row < dx.size(); ++row) dx(row) += dy["skip"_k](row);
    return std::pair{std::move(dx), fanout::psum(0)};
  }
};

// [split]
/// Scale, whose gradient can wait.
struct SplitScale {
  Scale layer;

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const { return layer.forward(ctx, x); }

  /// Returns dx, and what backward_weights() needs.
  auto backward_input(fanout::Context auto& ctx, const auto& x, fanout::View<const double, 1> dy) const {
    auto dx = fanout::output<double>(ctx);
    for (std::size_t row = 0; row < dy.size(); ++row) dx(row) = layer.scale * dy(row);
    return std::pair{dx, std::pair{x, dy}};
  }
  auto backward_weights(const auto& kept) const {
    const auto& [x, dy] = kept;
    double gradient = 0;
    for (std::size_t row = 0; row < dy.size(); ++row) gradient += x(row) * dy(row);
    return fanout::pmean(gradient / static_cast<double>(dy.size()));
  }
};
// [/split]

// [own schedule]
/// Each micro-batch goes forward through all stages and back again before the next one begins.
fanout::Schedule one_by_one(const fanout::Schedule::Shape& shape) {
  fanout::Schedule made;
  for (std::size_t stage = 0; stage < shape.devices.size(); ++stage) {
    auto& order = made.orders.emplace_back();  // the steps of this stage
    for (std::size_t k = 0; k < shape.micro_batches; ++k) {
      order.push_back({stage, k, fanout::Schedule::Pass::forward});
      order.push_back({stage, k, fanout::Schedule::Pass::backward});
    }
  }
  return made;
}
// [/own schedule]

TEST_CASE("documentation: training in stages") {
  fanout::Tensor<double, 1> x(8);
  fanout::Tensor<double, 1> targets(8);
  for (std::size_t row = 0; row < 8; ++row) {
    x(row) = static_cast<double>(row);
    targets(row) = 6 * x(row);
  }
  // [train]
  fanout::Pipeline net{fanout::stage(Scale{2}, fanout::host_devices(2)),
                       fanout::stage(Scale{1}, fanout::host_devices(1))};

  // Half the squared error: the mean of a shard's rows, and the gradient of each row.
  const auto loss = [](fanout::View<const double, 1> y, fanout::View<const double, 1> t) {
    fanout::Tensor<double, 1> dy(y.extents());
    double sum = 0;
    for (std::size_t row = 0; row < y.size(); ++row) {
      dy(row) = y(row) - t(row);
      sum += dy(row) * dy(row) / 2;
    }
    return std::pair{fanout::pmean(sum / static_cast<double>(y.size())), std::move(dy)};
  };
  double found = 0;
  for (int step = 0; step < 100; ++step) {
    const auto [loss_now, gradients] = net.train(x, targets, loss);
    const auto [first, second] = gradients;  // of each stage
    net.stage<0>().update([g = first](Scale& model) { model.scale -= 0.004 * g; });
    net.stage<1>().update([g = second](Scale& model) { model.scale -= 0.004 * g; });
    found = loss_now;
  }
  // [/train]
  CHECK(found < 1e-6);
  CHECK(net.stage<0>().model().scale * net.stage<1>().model().scale == doctest::Approx(6));
  const fanout::Pipeline thrifty{fanout::stage(fanout::recompute(Scale{2}), fanout::host_devices(1)),
                                 fanout::stage(Scale{3}, fanout::host_devices(1))};
  CHECK(thrifty.train(x, targets, loss).first < 1e-6);

  const fanout::Pipeline skipping{fanout::stage(Scale{2}, fanout::host_devices(1)),
                                  fanout::stage(Skip{}, fanout::host_devices(2)),
                                  fanout::stage(AddSkipped{{3}}, fanout::host_devices(1)).takes("x"_k, "skip"_k)};
  const auto [half_square, of_scales] = skipping.train(x, fanout::Tensor<double, 1>(x.size()), loss);
  CHECK(half_square > 0);
  // y = 2 x + 3 (2 x) = 8 x, so the loss grows by 8 x 4 x for each unit of the first scale, by 8 x 2 x for the last's.
  CHECK(std::get<0>(of_scales) == doctest::Approx(2 * std::get<2>(of_scales)));

  // [schedule]
  const fanout::Pipeline busy{fanout::PipelineOptions{.micro_batches = 8, .schedule = fanout::ZeroBubble{}},
                              fanout::stage(SplitScale{{2}}, fanout::host_devices(1)),
                              fanout::stage(SplitScale{{1}}, fanout::host_devices(1))};
  const std::vector<std::size_t> kept = busy.plan(100).kept;  // for a batch of 100 rows
  // kept is {3, 3}: of how many micro-batches each stage keeps the state, at most
  // [/schedule]
  CHECK(kept == std::vector<std::size_t>{3, 3});
  const auto with = [&](const auto& schedule) {
    return fanout::Pipeline{fanout::PipelineOptions{.schedule = schedule},
                            fanout::stage(Scale{2}, fanout::host_devices(1)),
                            fanout::stage(Scale{1}, fanout::host_devices(1))}
        .train(x, targets, loss);
  };
  const fanout::Pipeline split{fanout::PipelineOptions{.schedule = fanout::ZeroBubble{}},
                               fanout::stage(SplitScale{{2}}, fanout::host_devices(1)),
                               fanout::stage(SplitScale{{1}}, fanout::host_devices(1))};
  CHECK(split.train(x, targets, loss) == with(fanout::OneForwardOneBackward{}));
  CHECK(with(one_by_one) == with(fanout::GPipe{}));
}

// [slice]
/// A layer whose weights are too many for one device: each device has some of the outputs.
struct WideLayer {
  fanout::Slice<fanout::Tensor<float, 2>, 0> weight;  // [out, in]

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    const auto part = weight.part(ctx);  // a View of the device's rows of the weight
    fanout::Tensor<float, 2> y({x.extent(0), part.extent(0)});
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t o = 0; o < part.extent(0); ++o) {
        for (std::size_t i = 0; i < part.extent(1); ++i) y(row, o) += part(o, i) * x(row, i);
      }
    }
    return fanout::concat<1>(std::move(y));  // the outputs of all devices, side by side
  }
};
// [/slice]

TEST_CASE("documentation: bubbles") {
  const fanout::Tensor<double, 1> x(64);
  std::ostringstream out;
  // [report]
  const fanout::Options measured{.measure = true};
  const fanout::Pipeline net{fanout::stage(Scale{2}, fanout::host_devices(1), measured),
                             fanout::stage(Scale{1}, fanout::host_devices(1), measured)};
  for (int i = 0; i < 10; ++i) net(x);
  for (const fanout::Report& stage : net.report()) out << stage.bubble() << ' ' << to_string(stage);
  // [/report]
  CHECK(out.str().find("80 calls") != std::string::npos);
}

TEST_CASE("documentation: slices") {
  fanout::Tensor<float, 2> weight({6, 3});
  for (float& value : weight) value = 0.5F;
  const fanout::Tensor<float, 2> x = fanout::Tensor<float, 2>::full({2, 3}, 4);
  // [slice use]
  fanout::ParallelModel wide{WideLayer{weight}, fanout::host_devices(4)};
  fanout::Tensor<float, 2> y = wide(fanout::broadcast(x));                // all devices take all rows
  wide.update([](WideLayer& model) { model.weight.whole()(0, 0) = 2; });  // sees the whole
  // [/slice use]
  CHECK(y.extents() == fanout::Extents<2>{2, 6});
  CHECK(y(1, 5) == 6);
  CHECK(wide(fanout::broadcast(x))(0, 0) == 12);
}

TEST_CASE("documentation: layers for stages") {
  // [partition]
  const std::vector<double> seconds{1, 1, 1, 1, 1, 1, 4};  // of each layer
  const std::vector<double> speeds{1, 1};                  // of each device
  const std::vector<std::size_t> layers = fanout::partition_layers(seconds, speeds);
  // layers is {5, 2}
  // [/partition]
  CHECK(layers == std::vector<std::size_t>{5, 2});
}

}  // namespace

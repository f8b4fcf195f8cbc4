// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The network on two host devices, with OpenBLAS on one thread in each. Contenders:
// rows      each device takes its rows through all layers, block=N of them at a time (0: all at once)
// replicas  the same, by a forward that is not const: each device has weights of its own
// columns   each device computes its half of the features of all rows, a call for each layer

#include <cstddef>
#include <span>
#include <vector>

#include <fanout/array/strided_view.hpp>
#include <fanout/fanout.hpp>
#include <fanout/replica/strided_pieces.hpp>
#include <fanout/scatter/split_on.hpp>

#include <harness/slice.hpp>
#include <work/counting.hpp>
#include <work/devices.hpp>
#include <work/gemm.hpp>
#include <work/mlp.hpp>

namespace {

using benchmarks::Mlp;
using benchmarks::Slice;
using fanout::broadcast;
using fanout::Context;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;

struct Network {
  std::vector<benchmarks::Floats> weights;
  std::vector<benchmarks::Floats> bias;
  std::size_t block = 0;

  Network(const Mlp& mlp, std::size_t rows_at_a_time)
      : weights(mlp.weights, mlp.weights + Mlp::layers),
        bias(mlp.bias, mlp.bias + Mlp::layers),
        block(rows_at_a_time) {}

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    const std::size_t rows_at_a_time = block == 0 ? x.extent(0) : block;
    auto y = fanout::output<float>(ctx, x.extent(1));
    const auto between = fanout::empty<float>(ctx, rows_at_a_time, x.extent(1));
    benchmarks::run_layers(x.data(), x.extent(0), x.extent(1), rows_at_a_time, weights, bias, between.data(), y.data());
    return y;
  }
};

/// A forward that may change the network, so that each device has one of its own.
struct OwnNetwork {
  Network network;

  auto forward(Context auto& ctx, View<const float, 2> x) { return network.forward(ctx, x); }
};

/// One layer: the shard's columns of the weights and its part of the bias make the same columns of `y` from all of `x`.
struct Layer {
  void forward(Context auto& ctx, StridedView<const float, 2> w, std::span<const float> b, View<const float, 2> x,
               const View<float, 2>& y) const {
    benchmarks::one_layer(x.data(), x.extent(0), x.extent(1), w.data(), b.data(), b.size(), y.extent(1),
                          y.data() + ctx.rows().first);
  }
};

Tensor<float, 2> matrix(const benchmarks::Floats& values, std::size_t rows, std::size_t columns) {
  return Tensor<float, 2>(View<const float, 2>(values.data(), rows, columns));
}

}  // namespace

int main(int argc, char** argv) {
  Slice slice(argc, argv);
  if (slice.name() != "mlp") slice.fault("no case " + slice.name());
  const auto rows = static_cast<std::size_t>(slice.number("rows", 64));
  const auto width = static_cast<std::size_t>(slice.number("width", 256));
  const auto block = static_cast<std::size_t>(slice.number("block", 0));
  slice.environment(benchmarks::with_counts(slice, {{"OPENBLAS_NUM_THREADS", "1"}}));

  const Mlp mlp(rows, width);
  const Tensor<float, 2> x = matrix(mlp.input, rows, width);
  const auto devices = benchmarks::two_host_devices(slice);
  const auto run = [&](const auto& call) {
    slice.pin_caller();
    auto report = benchmarks::measure_and_count(slice, call);
    mlp.set_rate(report).print();
  };

  if (slice.contender() == "columns") {
    std::vector<Tensor<float, 2>> weights;
    for (const auto& values : mlp.weights) weights.push_back(matrix(values, width, width));
    Tensor<float, 2> y(rows, width);
    Tensor<float, 2> between(rows, width);
    const View<const float, 2> y_read = y;
    const View<const float, 2> between_read = between;
    const fanout::ParallelModel layer{Layer{}, devices};
    const auto call = [&] {
      layer(fanout::split<1>(weights[0]), mlp.bias[0], broadcast(x), broadcast(y.view()));
      layer(fanout::split<1>(weights[1]), mlp.bias[1], broadcast(y_read), broadcast(between.view()));
      layer(fanout::split<1>(weights[2]), mlp.bias[2], broadcast(between_read), broadcast(y.view()));
    };
    call();
    mlp.check(slice, y.data());
    run(call);
  } else if (slice.contender() == "replicas") {
    const fanout::ParallelModel model{OwnNetwork{Network(mlp, block)}, devices};
    const auto y = model(x);
    mlp.check(slice, y.data());
    run([&] { static_cast<void>(model(x)); });
  } else {
    const fanout::ParallelModel model{Network(mlp, block), devices};
    const auto y = model(x);
    mlp.check(slice, y.data());
    run([&] { static_cast<void>(model(x)); });
  }
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of docs/conformance.md, on GPUs, that are no single header's matter.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/cuda.hpp>

#include "cuda/gpus.hpp"
#include "cuda/host_launcher.hpp"
#include "support/message_of.hpp"

using fanout::Context;
using fanout::CudaDevice;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::to_host;
using fanout::View;
using fanout_test::has_stand_in;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::Watched;

namespace {

Tensor<double, 1> numbers(std::size_t size) {
  Tensor<double, 1> tensor(size);
  for (std::size_t i = 0; i < size; ++i) tensor[i] = static_cast<double>(i);
  return tensor;
}

std::vector<double> values(const Tensor<double, 1>& tensor) {
  const Tensor<double, 1> here = to_host(tensor);
  return {here.begin(), here.end()};
}

bool on(const Tensor<double, 1>& tensor, int gpu) { return tensor.space() == CudaDevice(gpu).memory().space; }

/// What a `forward` makes on its GPU from its rows: as many numbers as `size(rank)` says, each `value(rank)`.
template <class Size, class Value, class Rule>
auto made_on_gpus(int gpus, const Size& size, const Value& value, const Rule& rule) {
  const auto forward = [&](Context auto& ctx, fanout::RowRange) {
    auto part = fanout::empty<double>(ctx, size(ctx.rank()));
    const View<double, 1> to = part;
    fanout::launch(ctx, to.size(), [to, v = value(ctx.rank())](std::size_t i) { to[i] = v; });
    return rule(part);
  };
  return ParallelModel{forward, fanout::cuda_devices({.count = gpus})}(fanout::Range(static_cast<std::size_t>(gpus)));
}

}  // namespace

TEST_CASE_FIXTURE(Watched, "rule 80: in a forward its own GPU is the current device, and the caller's is as it was") {
  if (!has_stand_in(2)) return;
  fanout::cuda::set_device(1);
  const ParallelModel model{[](Context auto& ctx, fanout::RowRange) {
                              CHECK(fanout::cuda::current_device() == ctx.device().index());
                              CHECK(ctx.stream() == ctx.device().stream());
                              return std::vector{fanout::cuda::current_device()};
                            },
                            fanout::cuda_devices({0, 1})};
  CHECK(model(fanout::Range(2)) == std::vector{0, 1});
  CHECK(model.async(fanout::Range(2)).get() == std::vector{0, 1});
  CHECK(fanout::cuda::current_device() == 1);
  fanout::cuda::set_device(0);
}

TEST_CASE_FIXTURE(Watched,
                  "rules 98 and 99: results are gathered on the first GPU, on whichever GPU or host they stand") {
  if (!has_stand_in(2)) return;
  const auto on_host = numbers(2);
  const auto on_second = fanout::to(on_host, CudaDevice(1));
  const auto gathered = [](const Tensor<double, 1>& part) {
    return ParallelModel{[&part](fanout::RowRange) { return part.view(); },
                         fanout::cuda_devices({0, 1})}(fanout::Range(2));
  };
  for (const Tensor<double, 1>* part : {&on_host, &on_second}) {
    const auto result = gathered(*part);
    CHECK(on(result, 0));
    CHECK(values(result) == std::vector<double>{0, 1, 0, 1});
  }
}

TEST_CASE_FIXTURE(Watched, "rules 101 and 102: a result on a GPU is owned by the caller, also of one replica") {
  if (!has_stand_in(1)) return;
  const auto x = fanout::to(numbers(3), CudaDevice(0));
  const ParallelModel model{[](View<const double, 1> rows) { return rows; }, fanout::cuda_devices({0})};
  const auto result = model(x);
  CHECK(on(result, 0));
  CHECK(result.data() != x.data());
  CHECK(values(result) == values(x));
}

TEST_CASE_FIXTURE(Watched,
                  "rule 117: sums over GPUs are made in the order of the rows, bit by bit the same in every run") {
  if (!has_stand_in(2)) return;
  const int gpus = fanout::cuda::device_count();
  const auto value = [](std::size_t rank) { return (rank % 2 == 0 ? 1e17 : 1e-3) / static_cast<double>(3 + rank); };
  double in_order = value(0);
  for (int i = 1; i < gpus; ++i) in_order += value(static_cast<std::size_t>(i));
  for (int run = 0; run < 10; ++run) {
    const auto sum = made_on_gpus(
        gpus, [](std::size_t) { return 3; }, value, [](const auto& part) { return fanout::psum(part); });
    CHECK(values(sum) == std::vector<double>(3, in_order));
  }
}

TEST_CASE_FIXTURE(Watched, "rule 118: summing different extents on GPUs is an error, but not with one shard") {
  if (!has_stand_in(2)) return;
  const auto sum_of = [](int gpus) {
    return made_on_gpus(
        gpus, [](std::size_t rank) { return 3 + rank; }, [](std::size_t) { return 0.5; },
        [](const auto& part) { return fanout::psum(part); });
  };
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { sum_of(2); }), "output", "[3]", "[4]", "on cuda:1", "psum"));
  CHECK(values(sum_of(1)) == std::vector<double>(3, 0.5));
}

TEST_CASE_FIXTURE(Watched,
                  "rules 159 and 160: random numbers depend on the model's seed and the row, not on the GPUs") {
  if (!has_stand_in(2)) return;
  const auto drawn = [](int gpus, std::uint64_t seed) {
    const auto forward = [](Context auto& ctx, fanout::RowRange rows) {
      auto y = fanout::output<double>(ctx);
      const View<double, 1> to = y;
      fanout::launch(ctx, rows.size(), [to, first = ctx.random(0)](std::size_t i) {
        auto random = first.after(i);
        to[i] = random();
      });
      return y;
    };
    const ParallelModel model{forward, fanout::cuda_devices({.count = gpus}), fanout::Options{.seed = seed}};
    return values(model(fanout::Range(16)));
  };
  const auto one = drawn(1, 7);
  CHECK(drawn(2, 7) == one);
  CHECK(drawn(2, 8) != one);
  for (std::size_t i = 1; i < one.size(); ++i) CHECK(one[i] != one[i - 1]);
}

TEST_CASE_FIXTURE(Watched,
                  "rule 169: an array on the wrong GPU is a device mismatch, and copy() and to() transfer it") {
  if (!has_stand_in(2)) return;
  auto on_first = fanout::to(numbers(4), CudaDevice(0));
  const ParallelModel model{[](View<double, 1>) {}, fanout::cuda_devices({0, 1})};
  const std::string said = message_of<fanout::DeviceMismatch>([&] { model(fanout::inout(on_first)); });
  CHECK(says(said, "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0",
             "input[0]"));

  auto on_second = fanout::to(on_first, CudaDevice(1));
  CHECK(on(on_second, 1));
  CHECK(values(on_second) == values(numbers(4)));
  const Tensor<double, 1> zeros(4);
  fanout::copy(zeros, on_second);
  CHECK(values(on_second) == std::vector<double>(4, 0));
}

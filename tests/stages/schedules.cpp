// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <support/simulated.hpp>

namespace {

using fanout::DeviceSet;
using fanout::GPipe;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Interleaved;
using fanout::OneForwardOneBackward;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::Schedule;
using fanout::SimulatedDevice;
using fanout::stage;
using fanout::Tensor;
using fanout::View;
using fanout::ZeroBubble;
using fanout_test::simulated;

using Column = View<const double, 1>;
using Pass = Schedule::Pass;
constexpr Pass F = Pass::forward;
constexpr Pass B = Pass::backward;
constexpr Pass W = Pass::weights;

/// How many states a stage keeps now, and kept at most.
struct States {
  std::atomic<int> now{0};
  std::atomic<int> most{0};

  void add(int more) noexcept {
    const int kept = now += more;
    int before = most;
    while (before < kept && !most.compare_exchange_weak(before, kept)) {
    }
  }
};

States states_of_stages[16];

/// y = weight * x / (1 + |x|)
struct Layer {
  double weight;
  std::size_t stage = 15;

  void keep(int more) const noexcept { states_of_stages[stage].add(more); }

  auto forward(fanout::Context auto& ctx, Column x) const {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y(i) = weight * squashed(x(i));
    keep(1);
    return fanout::saved(y, x);
  }
  auto backward(fanout::Context auto& ctx, Column x, Column dy) const {
    auto dx = input_gradient(ctx, x, dy);
    keep(-1);
    return std::pair{dx, fanout::psum(weight_gradient(x, dy))};
  }

  static double squashed(double x) { return x / (1 + (x < 0 ? -x : x)); }
  auto input_gradient(fanout::Context auto& ctx, Column x, Column dy) const {
    auto dx = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double bottom = 1 + (x(i) < 0 ? -x(i) : x(i));
      dx(i) = weight * dy(i) / (bottom * bottom);
    }
    return dx;
  }
  static double weight_gradient(Column x, Column dy) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += squashed(x(i)) * dy(i);
    return sum;
  }
};

/// The same layer, which splits backward.
struct SplitLayer {
  Layer layer;

  auto forward(fanout::Context auto& ctx, Column x) const { return layer.forward(ctx, x); }
  auto backward_input(fanout::Context auto& ctx, Column x, Column dy) const {
    return std::pair{layer.input_gradient(ctx, x, dy), std::pair{x, dy}};
  }
  auto backward_weights(const auto& kept) const {
    layer.keep(-1);
    return fanout::psum(Layer::weight_gradient(kept.first, kept.second));
  }
};

template <class Model>
Model layer_of(std::size_t stage) {
  const Layer layer{1 + 0.25 * static_cast<double>(stage % 3), stage};
  if constexpr (std::is_same_v<Model, Layer>) {
    return layer;
  } else {
    return {layer};
  }
}

const auto squared = [](Column y, Column targets) {
  double sum = 0;
  Tensor<double, 1> dy(y.extents());
  for (std::size_t i = 0; i < y.size(); ++i) {
    dy(i) = y(i) - targets(i);
    sum += dy(i) * dy(i) / 2;
  }
  return std::pair{fanout::psum(sum), std::move(dy)};
};

Tensor<double, 1> numbers(std::size_t rows) {
  Tensor<double, 1> made(rows);
  for (std::size_t i = 0; i < rows; ++i) made(i) = 1.0 / static_cast<double>(i % 7 + 3) - 0.2;
  return made;
}

/// The loss and the gradients of so many stages.
struct Trained {
  double loss = 0;
  std::vector<double> gradients;
  std::vector<int> kept;

  friend bool operator==(const Trained& a, const Trained& b) { return a.loss == b.loss && a.gradients == b.gradients; }
};

template <class Model, class Devices, std::size_t... S>
Trained train(std::index_sequence<S...>, const PipelineOptions& options, std::size_t rows, const Devices& devices,
              std::size_t used) {
  ((states_of_stages[S].most = 0), ...);
  using Device = std::remove_cvref_t<decltype(devices[0])>;
  const Pipeline net{options, stage(layer_of<Model>(S), DeviceSet<Device>({devices[S % used]}))...};
  const auto [loss, gradients] = net.train(numbers(rows), numbers(rows), squared);
  const std::vector<std::size_t> announced = net.plan(rows).kept;
  CHECK(std::equal(announced.begin(), announced.end(), std::begin(states_of_stages),
                   [](std::size_t kept, const States& is) { return kept == static_cast<std::size_t>(is.most); }));
  return {loss, {std::get<S>(gradients)...}, {states_of_stages[S].most...}};
}

}  // namespace

TEST_CASE("schedules are tables") {
  const Schedule::Shape shape{.micro_batches = 3, .devices = {0, 1}};
  using Steps = std::vector<Schedule::Step>;
  const auto all = GPipe{}(shape).orders;
  CHECK(all == std::vector<Steps>{{{0, 0, F}, {0, 1, F}, {0, 2, F}, {0, 0, B}, {0, 1, B}, {0, 2, B}},
                                  {{1, 0, F}, {1, 1, F}, {1, 2, F}, {1, 0, B}, {1, 1, B}, {1, 2, B}}});
  const auto turns = OneForwardOneBackward{}(shape).orders;
  CHECK(turns == std::vector<Steps>{{{0, 0, F}, {0, 1, F}, {0, 0, B}, {0, 2, F}, {0, 1, B}, {0, 2, B}},
                                    {{1, 0, F}, {1, 0, B}, {1, 1, F}, {1, 1, B}, {1, 2, F}, {1, 2, B}}});
  const auto zero = ZeroBubble{}(shape).orders;
  CHECK(zero ==
        std::vector<Steps>{
            {{0, 0, F}, {0, 1, F}, {0, 2, F}, {0, 0, B}, {0, 0, W}, {0, 1, B}, {0, 1, W}, {0, 2, B}, {0, 2, W}},
            {{1, 0, F}, {1, 0, B}, {1, 1, F}, {1, 1, B}, {1, 2, F}, {1, 2, B}, {1, 0, W}, {1, 1, W}, {1, 2, W}}});
  const auto interleaved = Interleaved{}({.micro_batches = 2, .devices = {0, 1, 0, 1}}).orders;
  CHECK(interleaved ==
        std::vector<Steps>{{{0, 0, F}, {0, 1, F}, {2, 0, F}, {2, 1, F}, {2, 0, B}, {2, 1, B}, {0, 0, B}, {0, 1, B}},
                           {{1, 0, F}, {1, 1, F}, {3, 0, F}, {3, 0, B}, {3, 1, F}, {3, 1, B}, {1, 0, B}, {1, 1, B}}});
}

namespace {

/// Checks that all schedules give the same bits.
template <std::size_t P, class Devices>
void check_same_bits(const Devices& devices) {
  constexpr auto stages = std::make_index_sequence<P>();
  for (const std::size_t m : std::vector<std::size_t>{1, 2, 7, 32}) {
    CAPTURE(P);
    CAPTURE(m);
    const std::size_t rows = m + m / 2;  // some have one row, others two
    const auto with = [&](auto schedule) { return PipelineOptions{.micro_batches = m, .schedule = schedule}; };
    const Trained wanted = train<Layer>(stages, PipelineOptions{.micro_batches = m}, rows, devices, P);
    for (std::size_t s = 0; s < P; ++s) CHECK(wanted.kept[s] == static_cast<int>(std::min(P - s, m)));
    const Trained all = train<Layer>(stages, with(GPipe{}), rows, devices, P);
    CHECK(all == wanted);
    CHECK(all.kept == std::vector<int>(P, static_cast<int>(m)));
    CHECK(train<SplitLayer>(stages, with(OneForwardOneBackward{}), rows, devices, P) == wanted);
    const Trained zero = train<SplitLayer>(stages, with(ZeroBubble{}), rows, devices, P);
    CHECK(zero == wanted);
    for (const int kept : zero.kept) CHECK(kept <= static_cast<int>(2 * P - 1));
    for (std::size_t used = 1; used <= P; ++used) {
      if (P % used == 0) CHECK(train<Layer>(stages, with(Interleaved{}), rows, devices, used) == wanted);
    }
  }
}

}  // namespace

TEST_CASE("loss and gradients have the same bits for each schedule") {
  check_same_bits<1>(host_devices(1));
  check_same_bits<2>(host_devices(2));
  check_same_bits<3>(simulated(3));
  check_same_bits<4>(host_devices(4));
  check_same_bits<8>(simulated(8));
}

namespace {

/// The virtual time of a training step, in times of one step. A micro-batch has one row.
template <class Model, std::size_t Stages>
std::vector<std::int64_t> steps_of(PipelineOptions options, std::size_t used = Stages) {
  const auto devices = simulated(used, {.rows_per_second = 1});
  train<Model>(std::make_index_sequence<Stages>(), options, options.micro_batches, devices, used);
  std::vector<std::int64_t> steps;
  for (const SimulatedDevice& device : devices) steps.push_back(device.time() / 1'000'000'000);
  return steps;
}

/// Checks that the steps of each stage of a ZeroBubble follow each other without a gap, if all take one time.
void check_never_idle(std::size_t stages, std::size_t micro_batches) {
  std::vector<std::size_t> devices(stages);
  std::iota(devices.begin(), devices.end(), std::size_t{0});
  const auto orders = ZeroBubble{}({micro_batches, devices}).orders;
  std::map<std::array<std::size_t, 3>, std::size_t> ends;  // by stage, pass and micro-batch
  const auto end_of = [&](std::size_t s, Pass pass, std::size_t k) -> std::size_t& {
    return ends[{s, static_cast<std::size_t>(pass), k}];
  };
  for (std::size_t time = 0; time < 3 * micro_batches + stages; ++time) {
    for (std::size_t s = 0; s < stages; ++s) {
      if (time < s || time - s >= orders[s].size()) continue;
      const Schedule::Step& step = orders[s][time - s];
      const std::size_t k = step.micro_batch;
      end_of(s, step.pass, k) = time + 1;
      // What it takes has been made before, at a time above 0.
      const std::size_t ready = step.pass == F   ? (s == 0 ? 1 : end_of(s - 1, F, k))
                                : step.pass == W ? end_of(s, B, k)
                                                 : end_of(s + 1 == stages ? s : s + 1, s + 1 == stages ? F : B, k);
      CHECK(ready != 0);
      CHECK(ready <= std::max<std::size_t>(time, 1));
    }
  }
}

template <std::size_t P>
void check_times() {
  for (const std::size_t m : std::vector<std::size_t>{8, 32}) {
    CAPTURE(P);
    CAPTURE(m);
    const auto bound = [&](std::size_t steps, std::size_t stages = 1) {
      return static_cast<std::int64_t>(steps * (m * stages + P - 1));
    };
    CHECK(steps_of<Layer, P>({.micro_batches = m})[0] == bound(2));
    CHECK(steps_of<Layer, P>({.micro_batches = m, .schedule = GPipe{}})[0] == bound(2));
    CHECK(steps_of<Layer, 2 * P>({.micro_batches = m, .schedule = Interleaved{}}, P)[0] == bound(2, 2));
    CHECK(steps_of<SplitLayer, P>({.micro_batches = m, .schedule = OneForwardOneBackward{}})[0] == bound(3));
    if (m + 1 < 2 * P) continue;
    const PipelineOptions zero_bubble{.micro_batches = m, .schedule = ZeroBubble{}};
    CHECK(steps_of<SplitLayer, P>(zero_bubble)[0] == static_cast<std::int64_t>(3 * m + P - 1));
    check_never_idle(P, m);
  }
}

}  // namespace

TEST_CASE("equal stages that are trained take as long as the schedule says") {
  check_times<2>();
  check_times<4>();
  check_times<8>();
}

namespace {

/// What a schedule that cannot run is refused with.
std::string refusal(std::vector<std::vector<Schedule::Step>> orders, std::size_t in_flight = 0) {
  const auto schedule = [&](const Schedule::Shape&) { return Schedule{orders}; };
  const auto devices = host_devices(2);
  const Pipeline net{PipelineOptions{.micro_batches = 2, .in_flight = in_flight, .schedule = schedule},
                     stage(Layer{1}, DeviceSet<HostDevice>({devices[0]})),
                     stage(Layer{2}, DeviceSet<HostDevice>({devices[1]}))};
  try {
    net.train(numbers(4), numbers(4), squared);
  } catch (const fanout::InvalidArgument& error) {
    return error.what();
  }
  return "";
}

void check_refused(const std::string& refusal, const char* first, const char* second) {
  CAPTURE(refusal);
  CHECK(refusal.find(first) != std::string::npos);
  CHECK(refusal.find(second) != std::string::npos);
}

const std::vector<Schedule::Step> last_in_turns{{1, 0, F}, {1, 0, B}, {1, 1, F}, {1, 1, B}};

}  // namespace

TEST_CASE("a schedule that cannot run is refused before anything runs") {
  check_refused(refusal({{{0, 0, F}, {0, 1, F}, {0, 0, B}}, last_in_turns}), "a step is missing",
                "no backward of micro-batch 1 at stage 0");
  check_refused(refusal({last_in_turns}), "a step is missing", "no forward of micro-batch 0 at stage 0");
  check_refused(refusal({{{2, 0, F}}}), "there is no such step", "stage 2, micro-batch 0");
  check_refused(refusal({{{0, 2, F}}}), "there is no such step", "stage 0, micro-batch 2");
  check_refused(refusal({{{0, 1, F}, {0, 0, F}}}), "in order", "forward of micro-batch 0 at stage 0");
  check_refused(refusal({{{0, 0, F}, {0, 1, F}, {0, 1, F}}}), "no further step", "forward of micro-batch 1 at stage 0");
  check_refused(refusal({{{0, 0, F}}, {{0, 1, F}}}), "two orders", "stage 0");
  check_refused(refusal({{{0, 0, F}, {1, 0, F}}}), "two devices", "stages 0 and 1");
  check_refused(refusal({{{0, 0, F}, {0, 0, B}, {0, 0, W}}}), "split backward", "weights of micro-batch 0 at stage 0");
  check_refused(refusal({{{0, 0, B}, {0, 0, F}, {0, 1, F}, {0, 1, B}}, last_in_turns}), "cannot end",
                "backward of micro-batch 0 at stage 0 waits");
  // Stage 1 waits for the second micro-batch, which stage 0 begins when the first one is back.
  check_refused(refusal({{{0, 0, F}, {0, 0, B}, {0, 1, F}, {0, 1, B}}, {{1, 0, F}, {1, 1, F}, {1, 0, B}, {1, 1, B}}}),
                "cannot end", "backward of micro-batch 0 at stage 0 waits");
  check_refused(refusal(OneForwardOneBackward{}({2, {0, 1}}).orders, 1), "in flight", "at least 2");
  CHECK(refusal(OneForwardOneBackward{}({2, {0, 1}}).orders, 2).empty());
}

TEST_CASE("Interleaved is refused for stages on other devices than in turns") {
  for (const auto& devices : std::vector<std::vector<std::size_t>>{{0, 1, 0}, {0, 0, 1, 1}, {0, 1, 1, 0}}) {
    CHECK_THROWS_WITH_AS(Interleaved{}({.micro_batches = 4, .devices = devices}),
                         doctest::Contains("stage s on device"), fanout::InvalidArgument);
  }
}

TEST_CASE("a function may make the schedule, and a stage may run other stages' steps in between") {
  // Both stages are on one device, which takes each micro-batch all the way.
  std::vector<std::size_t> devices;
  const auto one_by_one = [&devices](const Schedule::Shape& shape) {
    devices = shape.devices;
    Schedule made{{{}}};
    for (std::size_t k = 0; k < shape.micro_batches; ++k) {
      for (const auto& [s, pass] : {std::pair{0, F}, {1, F}, {1, B}, {0, B}}) {
        made.orders[0].push_back({static_cast<std::size_t>(s), k, pass});
      }
    }
    return made;
  };
  constexpr auto two = std::make_index_sequence<2>();
  const Trained wanted = train<Layer>(two, {.micro_batches = 5}, 12, host_devices(1), 1);
  const Trained found = train<Layer>(two, {.micro_batches = 5, .schedule = one_by_one}, 12, host_devices(1), 1);
  CHECK(found == wanted);
  CHECK(found.kept == std::vector<int>{1, 1});
  CHECK(devices == std::vector<std::size_t>{0, 0});
}

TEST_CASE("any order that can end gives the same bits") {
  std::mt19937::result_type seed = 0;
  const auto any_order = [&seed](const Schedule::Shape& shape) {
    std::mt19937 random(seed);
    // Each stage takes one of the steps that it could take, as if each ended at once.
    const std::size_t p = shape.devices.size();
    std::vector<std::array<std::size_t, 3>> done(p);
    Schedule made;
    made.orders.resize(p);
    for (std::size_t left = 3 * p * shape.micro_batches; left != 0;) {
      const std::size_t s = random() % p;
      const std::size_t pass = random() % 3;
      const std::size_t given = pass == 2             ? done[s][1]
                                : pass == 0 && s == 0 ? shape.micro_batches
                                : pass == 0           ? done[s - 1][0]
                                : s + 1 == p          ? done[s][0]
                                                      : std::min(done[s][0], done[s + 1][1]);
      if (done[s][pass] == given) continue;
      made.orders[s].push_back({s, done[s][pass]++, static_cast<Pass>(pass)});
      --left;
    }
    return made;
  };
  constexpr auto four = std::make_index_sequence<4>();
  const Trained wanted = train<Layer>(four, {.micro_batches = 6}, 17, host_devices(4), 4);
  for (; seed < 20; ++seed) {
    CHECK(train<SplitLayer>(four, {.micro_batches = 6, .schedule = any_order}, 17, host_devices(4), 4) == wanted);
  }
}

TEST_CASE("recompute() of a stage that splits backward") {
  const auto train_once = [](auto layer) {
    const Pipeline net{PipelineOptions{.micro_batches = 3, .schedule = ZeroBubble{}},
                       stage(std::move(layer), host_devices(2)), stage(SplitLayer{Layer{2}}, host_devices(1))};
    return net.train(numbers(8), numbers(8), squared);
  };
  CHECK(train_once(SplitLayer{Layer{1.5}}) == train_once(fanout::recompute(SplitLayer{Layer{1.5}})));
}

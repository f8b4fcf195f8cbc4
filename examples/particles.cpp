// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// State that goes round: a struct of arrays is passed to a model, which returns the next one. The struct is a template
// of the kind of its arrays, so the caller owns a State<Tensor>, forward is handed a State<ConstView> of the shard's
// rows, and nothing is copied or repeated.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fanout/fanout.hpp>
#include <utility>

// [struct]
template <template <class, std::size_t> class Array>
struct State {
  Array<double, 2> position;   // [particles, 3]
  Array<double, 2> velocity;   // [particles, 3]
  fanout::First<double> time;  // the same for all particles
};
// [/struct]

// [forward]
/// Particles on springs: one step of the leapfrog method.
struct Step {
  double length;

  State<fanout::Tensor> forward(fanout::Context auto& ctx, const State<fanout::ConstView>& now) const {
    auto position = fanout::output<double>(ctx, 3);  // this shard's rows of the next state
    auto velocity = fanout::output<double>(ctx, 3);
    for (std::size_t i = 0; i < position.extent(0); ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const double half = now.velocity(i, axis) - length / 2 * now.position(i, axis);
        position(i, axis) = now.position(i, axis) + length * half;
        velocity(i, axis) = half - length / 2 * position(i, axis);
      }
    }
    return {position, velocity, now.time.value + length};
  }
};
// [/forward]

double energy(const State<fanout::Tensor>& state) {
  double sum = 0;
  for (const double x : state.position) sum += x * x / 2;
  for (const double v : state.velocity) sum += v * v / 2;
  return sum;
}

int main() {
  const std::size_t particles = 1000;
  const fanout::ParallelModel step{Step{.length = 0.01}, fanout::host_devices(2)};
  State<fanout::Tensor> state{.position = fanout::Tensor<double, 2>({particles, 3}),
                              .velocity = fanout::Tensor<double, 2>::full({particles, 3}, 1),
                              .time = {0}};
  const auto report = [&] {
    std::printf("energy %.3f at %.2f, position %.3f\n", energy(state), state.time.value, state.position(0, 0));
  };
  report();
  // [use]
  for (int n = 0; n < 100; ++n) state = step(state);
  // [/use]
  report();
  // [into]
  State<fanout::Tensor> next = state;  // once: from here on nothing is allocated
  for (int n = 0; n < 100; ++n) {
    step.into(next)(state);
    std::swap(state, next);
  }
  // [/into]
  report();
}

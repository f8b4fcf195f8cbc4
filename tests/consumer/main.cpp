// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program, outside the repository: it knows only where the headers are.
#include <cstddef>
#include <cstdio>
#include <tuple>

#include <fanout/fanout.hpp>

// [version]
#if FANOUT_VERSION < 100
#error "this program needs fanout 0.1.0 or newer"
#endif
// [/version]

using namespace fanout::literals;

/// Scores each row by its distance from a center.
struct Model {
  fanout::Tensor<float, 1> center;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> points) const {
    auto distance = fanout::output<float>(ctx);
    float total = 0;
    for (std::size_t i = 0; i < points.extent(0); ++i) {
      distance[i] = 0;
      for (std::size_t k = 0; k < points.extent(1); ++k) {
        const float off = points(i, k) - center[k];
        distance[i] += off * off;
      }
      total += distance[i];
    }
    return std::tuple{distance, fanout::dict("rows"_k = points.extent(0), "total"_k = fanout::psum(total))};
  }
};

int main() {
  fanout::Tensor<float, 1> center(2);
  center[0] = 1;
  fanout::Tensor<float, 2> points(5, 2);
  for (std::size_t i = 0; i < 5; ++i) points(i, 0) = static_cast<float>(i);

  const fanout::ParallelModel model{Model{center}, fanout::host_devices(2)};
  const auto [distance, extras] = model(points);
  std::printf("%g in all, on %zu devices\n", static_cast<double>(extras["total"_k]), extras["rows"_k].size());
  const bool right = distance.size() == 5 && distance[4] == 9 && extras["total"_k] == 15 && extras["rows"_k][1] == 2;
  return right ? 0 : 1;
}

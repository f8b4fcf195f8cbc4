// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pipeline: while the devices work on one batch, the next one is read, and the result before is written. Calls are
// asynchronous, their results come in order, and two are pending at most, so that no more memory is needed than that.

#include <cstddef>
#include <cstdio>
#include <deque>
#include <fanout/fanout.hpp>
#include <utility>

constexpr int batches = 5;

/// The n-th batch, as one would read it from a file: [7, 4].
fanout::Tensor<float, 2> read_batch(int n) {
  fanout::Tensor<float, 2> batch(7, 4);
  float value = static_cast<float>(n);
  for (float& x : batch.values()) x = value += 0.5F;
  return batch;
}

/// Rows, each divided by its largest element.
struct Scale {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      float largest = x(row, 0);
      for (const float value : x.row(row)) largest = value > largest ? value : largest;
      for (std::size_t i = 0; i < x.extent(1); ++i) y(row, i) = x(row, i) / largest;
    }
    return y;
  }
};

float total(const fanout::Tensor<float, 2>& batch) {
  float sum = 0;
  for (const float value : batch.values()) sum += value;
  return sum;
}

int main() {
  const fanout::ParallelModel model{Scale{}, fanout::host_devices(2)};

  int written = 0;
  const auto write = [&written](const fanout::Tensor<float, 2>& batch) {
    std::printf("batch %d: %.4f\n", written++, static_cast<double>(total(batch)));
  };
  // [pipeline]
  std::deque<fanout::Pending<fanout::Tensor<float, 2>>> pending;
  for (int n = 0; n < batches; ++n) {
    pending.push_back(model.async(read_batch(n)));  // owns the batch, and does not wait
    if (pending.size() < 2) continue;
    write(pending.front().get());  // the oldest: waits if it must
    pending.pop_front();
  }
  for (auto& last : pending) write(last.get());
  // [/pipeline]

  for (int n = 0; n < batches; ++n) {
    if (total(model.async(read_batch(n)).get()) != total(model(read_batch(n)))) return 1;
  }
  std::printf("the same as one by one\n");
}

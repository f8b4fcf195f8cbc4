// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The means of a table's rows, where the table is a std::mdspan of somebody else's memory and stands there by columns.

#include <cstddef>
#include <cstdio>
#include <fanout/adapt/mdspan.hpp>
#include <fanout/fanout.hpp>
#include <mdspan>
#include <tuple>
#include <vector>

int main() {
  // [mdspan]
  using Table = std::mdspan<const double, std::dextents<std::size_t, 2>, std::layout_left>;
  using Rows = fanout::MdspanRows<Table>;  // the same with strides, for some of the rows

  const std::vector<double> measured{1, 2, 3, 4, 5, 20, 30, 40, 50, 60};
  const Table table(measured.data(), 5, 2);

  const fanout::ParallelModel model{[](fanout::Context auto& ctx, Rows rows) {
                                      auto means = fanout::output<double>(ctx);
                                      const auto mean = fanout::as_mdspan(means);  // a View, an Output or a Tensor
                                      for (std::size_t i = 0; i < rows.extent(0); ++i) {
                                        mean[i] = (rows[i, 0] + rows[i, 1]) / 2;
                                      }
                                      return std::tuple{means, rows};
                                    },
                                    fanout::host_devices(2)};
  const auto [means, copy] = model(table);  // a Tensor<double, 1>, and the table as a Tensor<double, 2>
  // [/mdspan]

  for (std::size_t i = 0; i < means.size(); ++i) std::printf("%g and %g: %g\n", copy(i, 0), copy(i, 1), means[i]);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What libtorch's data_parallel does with arrays on its way in and out, on the CPU: chunk, and cat of what came of the
// chunks. chunk_cat: the chunks themselves. chunk_clone_cat: copies of them, as in a device's own memory. A contender
// that ends in _out writes into a tensor that is there.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <harness/slice.hpp>
#include <work/copied.hpp>
#include <work/counting.hpp>
#include <work/grid.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  const bool scatter_gather = slice.name() == "scatter_gather";
  if (!scatter_gather && slice.name() != "forced_copy") slice.fault("no case " + slice.name());
  const benchmarks::Grid grid(slice.number("floats", scatter_gather ? 1e4 : 1e6));
  const auto threads = static_cast<int>(slice.number("threads", 2));
  const auto dim = static_cast<std::int64_t>(slice.number("dim", 0));
  slice.environment(benchmarks::with_counts(
      slice, {{"OMP_NUM_THREADS", std::to_string(threads)}, {"OMP_PLACES", "cores"}, {"OMP_PROC_BIND", "true"}}));
  at::set_num_threads(threads);
  const c10::InferenceMode inference;

  const std::string& way = slice.contender();
  const bool clone = way == "chunk_clone_cat" || way == "chunk_clone_cat_out";
  const bool out = way == "chunk_cat_out" || way == "chunk_clone_cat_out";
  const at::Tensor x = at::empty({static_cast<std::int64_t>(grid.rows), static_cast<std::int64_t>(grid.columns)});
  for (std::size_t i = 0; i < grid.size(); ++i) x.data_ptr<float>()[i] = benchmarks::element(i);
  at::Tensor y = at::zeros_like(x);

  const auto call = [&]() -> at::Tensor {
    std::vector<at::Tensor> parts = x.chunk(2, dim);
    if (clone) {
      for (at::Tensor& part : parts) part = part.clone();
    }
    return out ? at::cat_out(y, parts, dim) : at::cat(parts, dim);
  };
  if (!at::equal(call(), x)) slice.fault("a result that is not the input");
  slice.pin_caller();
  auto report = benchmarks::measure_and_count(slice, [&] { static_cast<void>(call()); });
  const auto bytes = static_cast<double>(grid.size() * sizeof(float));
  report.set("bytes_copied", bytes * (clone ? 2 : 1));
  benchmarks::set_copied(report, bytes).print();
}

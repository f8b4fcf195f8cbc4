// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <source_location>

#include <unistd.h>

#include <cuda_runtime_api.h>

#include <fanout/cuda.hpp>

namespace fanout_test {

/// Ends the process with 1 if it is not so.
inline void expect(bool so, std::source_location where = std::source_location::current()) {
  if (so) return;
  std::fprintf(stderr, "%s:%u: not so\n", where.file_name(), static_cast<unsigned>(where.line()));
  ::_exit(EXIT_FAILURE);
}

/// Ends the process as one that was skipped unless there are so many GPUs.
inline void need_gpus(int count) {
  if (fanout::cuda::device_count() >= count) return;
  std::printf("SKIPPED: fewer than %d CUDA devices\n", count);
  std::exit(77);
}

inline bool is_mode(int argc, char** argv, const char* mode) { return argc > 1 && std::strcmp(argv[1], mode) == 0; }

/// Twice the input, of any device: y = x + x by copies and no kernel, so that it needs no nvcc. The weights are there
/// to be copied and changed.
struct Copied {
  fanout::Tensor<float, 1> weights;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x, bool fails) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    if constexpr (requires { ctx.stream(); }) {
      fanout::cuda::check(
          ::cudaMemcpyAsync(y.data(), x.data(), x.size() * sizeof(float), cudaMemcpyDefault, ctx.stream().get()),
          "cudaMemcpyAsync");
    } else {
      std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
    }
    if (fails) throw fanout::InvalidArgument("as was asked for");
    return y;
  }
};

inline fanout::Tensor<float, 2> numbers(std::size_t rows) {
  fanout::Tensor<float, 2> x(rows, 3);
  float next = 0;
  for (float& value : x) value = next++;
  return x;
}

/// Also of an array that lies on a GPU.
inline bool equal(const fanout::Tensor<float, 2>& found, const fanout::Tensor<float, 2>& wanted) {
  const auto here = fanout::to_host(found);
  return here.size() == wanted.size() && std::memcmp(here.data(), wanted.data(), here.size() * sizeof(float)) == 0;
}

}  // namespace fanout_test

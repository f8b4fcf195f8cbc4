// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An array of another library comes as a DLPack tensor, is used without a copy, and a result goes back as one.

#include <cstdint>
#include <cstdio>
#include <fanout/adapt/dlpack.hpp>
#include <fanout/fanout.hpp>
#include <utility>

/// Another library, which knows nothing of fanout.
namespace other {

struct Array {
  float elements[6] = {1, 2, 3, 4, 5, 6};
  std::int64_t shape[2] = {3, 2};
  DLManagedTensor managed = {{elements, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0}, this, &done};

  static void done(DLManagedTensor* self) {
    std::printf("the other library gets its array back\n");
    delete static_cast<Array*>(self->manager_ctx);
  }
};

DLManagedTensor* make() { return &(new Array)->managed; }

void print(DLManagedTensor* array) {
  for (std::int64_t i = 0; i < array->dl_tensor.shape[0]; ++i) {
    std::printf("%g\n", static_cast<double>(static_cast<const float*>(array->dl_tensor.data)[i]));
  }
  array->deleter(array);
}

}  // namespace other

int main() {
  const fanout::ParallelModel sums{[](fanout::Context auto& ctx, fanout::View<const float, 2> rows) {
                                     auto sum = fanout::output<float>(ctx);
                                     for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rows(i, 0) + rows(i, 1);
                                     return sum;
                                   },
                                   fanout::host_devices(2)};
  // [dlpack]
  {
    const auto input = fanout::from_dlpack<float, 2>(other::make());  // a Tensor<float, 2>, not copied
    auto output = sums(input);
    other::print(fanout::to_dlpack(std::move(output)));  // nor is this
  }                                                      // here `input` calls the deleter
  // [/dlpack]
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a call takes 64 arguments at most; put some of them into a tuple, a dict or a struct
#include <cstddef>
#include <utility>

#include <fanout/fanout.hpp>

struct Count {
  template <class... X>
  int forward(const X&...) const {
    return static_cast<int>(sizeof...(X));
  }
};

template <std::size_t... I>
void call(const fanout::Tensor<int, 1>& x, std::index_sequence<I...>) {
  fanout::ParallelModel model(Count{}, fanout::host_devices(2));
  model((static_cast<void>(I), x)...);
}

int main() {
#ifdef FANOUT_CONTROL
  call(fanout::Tensor<int, 1>(4), std::make_index_sequence<64>{});
#else
  call(fanout::Tensor<int, 1>(4), std::make_index_sequence<65>{});
#endif
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library is opened, calls its models and is closed, again and again, while the devices' threads go on. Two programs
// are made of this file: closing has workers of its own, which run the library's shards, and closing_stranger does not
// know fanout, so that the library starts workers.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

#ifndef FANOUT_TEST_STRANGER
#include <fanout/fanout.hpp>
#endif

namespace {

constexpr int calls = 100;

int own_calls() {
  int sum = 2 * calls;
#ifndef FANOUT_TEST_STRANGER
  const fanout::ParallelModel model{[](fanout::View<const int, 1> x) { return x[0] + 1; }, fanout::host_devices(2)};
  const fanout::Tensor<int, 1> x(2);
  sum = 0;
  for (int i = 0; i < calls; ++i) {
    const auto parts = model(x);
    sum += parts(0) + parts(1);
  }
#endif
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  alarm(100);
  int unloaded = 0;
  for (int round = 0; round < 20; ++round) {
    if (own_calls() != 2 * calls) return 3;
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? dlsym(library, "plugin_calls") : nullptr;
    if (symbol == nullptr) {
      std::printf("%s\n", dlerror());
      return 2;
    }
    if (reinterpret_cast<int (*)(int)>(symbol)(calls) != 2 * calls) return 4;
    dlclose(library);
    void* still = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    if (still != nullptr) dlclose(still);
    unloaded += still == nullptr ? 1 : 0;
    usleep(3'000);  // the threads go to sleep, and would read what was in the library
    if (own_calls() != 2 * calls) return 5;
  }
  std::printf("the library was unloaded %d times of 20\n", unloaded);
  return 0;
}

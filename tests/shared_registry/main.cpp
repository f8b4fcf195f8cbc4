// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared libraries and the program must see one registry of devices, else each would start workers of its
// own on the same cores; and one chain of calls, else a model could not tell that it is called from inside
// itself by way of another library. Three programs are made of this file:
//   linked    links both libraries;
//   opened    opens them at run time, their symbols kept to themselves (RTLD_LOCAL), and exports its own;
//   stranger  opens them too, and does not know fanout itself, as Python with two extension modules.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "../support/fork.hpp"

#ifndef FANOUT_TEST_STRANGER
#include <fanout/call/call_scope.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/worker/registry.hpp>
#endif

namespace {

struct Side {
  const void* (*registry)();
  const void* (*worker)();
  unsigned (*epoch)();
  int (*call)(int (*)());
  int (*update)();
};
Side left;
Side right;
int failures = 0;

void check(bool holds, const char* what) {
  std::printf("%s: %s\n", holds ? "holds" : "FAILS", what);
  if (!holds) ++failures;
}

}  // namespace

#ifdef FANOUT_TEST_LINKED
extern "C" {
const void* left_registry();
const void* left_worker();
unsigned left_epoch();
int left_call(int (*)());
int left_update();
const void* right_registry();
const void* right_worker();
unsigned right_epoch();
int right_call(int (*)());
int right_update();
}
static bool load(char**) {
  left = {left_registry, left_worker, left_epoch, left_call, left_update};
  right = {right_registry, right_worker, right_epoch, right_call, right_update};
  return true;
}
#else
template <class F>
static bool find(void* library, const char* name, F*& function) {
  void* symbol = library != nullptr ? dlsym(library, name) : nullptr;
  if (symbol == nullptr) std::printf("%s\n", dlerror());
  function = reinterpret_cast<F*>(symbol);
  return symbol != nullptr;
}
static bool load(char** paths) {
  void* l = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
  void* r = dlopen(paths[2], RTLD_NOW | RTLD_LOCAL);
  return find(l, "left_registry", left.registry) && find(l, "left_worker", left.worker) &&
         find(l, "left_epoch", left.epoch) && find(l, "left_call", left.call) && find(l, "left_update", left.update) &&
         find(r, "right_registry", right.registry) && find(r, "right_worker", right.worker) &&
         find(r, "right_epoch", right.epoch) && find(r, "right_call", right.call) &&
         find(r, "right_update", right.update);
}
#endif

int main(int argc, char** argv) {
  if (argc != 3 || !load(argv)) return 2;
  alarm(100);

  check(left.registry() != nullptr && left.registry() == right.registry(), "the libraries have one registry");
  check(left.worker() != nullptr && left.worker() == right.worker(), "host:0 has one worker in both libraries");
#ifndef FANOUT_TEST_STRANGER
  check(left.registry() == &fanout::backend::registry(), "the program has the libraries' registry");
  check(left.worker() == &fanout::host_devices(2)[0].worker(), "host:0 has the libraries' worker in the program");
  // Code of clang shares the chain of calls only through a program that has it too, as one that calls models has.
  check(fanout::detail::current_call() == nullptr, "the program is outside of all calls");
#endif

  check(left.call([] { return 1; }) == 2, "a library's model runs");
  check(left.call([] { return right.call([] { return 1; }); }) == 4, "a forward calls the other library's model");
  check(left.call([] { return right.update(); }) == 0, "a forward updates the other library's model");
  check(left.call([] { return left.update(); }) == 2, "a model cannot be updated from inside its own forward");
  check(left.call([] { return right.call([] { return left.update(); }); }) == 4,
        "nor by way of the other library, whose model is between");
  check(right.call([] { return left.call([] { return right.update(); }); }) == 4, "and the other way round");
  check(left.update() == 0 && right.update() == 0, "afterwards both models can be updated");
  check(left.call([] { return right.call([] { return 1; }); }) == 4, "and called");

  if (fanout_test::can_fork) {
    const unsigned before = left.epoch();
    check(right.epoch() == before, "the libraries have one fork epoch");
    const pid_t child = fork();
    if (child == 0) {
      const bool moved = left.epoch() == before + 1 && right.epoch() == before + 1;
      alarm(60);
      _exit(moved && left.call([] { return right.call([] { return 1; }); }) == 4 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child of fork can call both models");
  } else {
    std::printf("skipped: %s\n", fanout_test::cannot_fork);
  }
  return failures == 0 ? 0 : 1;
}

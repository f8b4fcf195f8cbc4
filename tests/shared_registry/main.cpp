// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared libraries and the program must see one registry of devices, else each would start workers of its
// own on the same cores. Three programs are made of this file:
//   linked    links both libraries;
//   opened    opens them at run time, their symbols kept to themselves (RTLD_LOCAL), and exports its own;
//   stranger  opens them too, and does not know fanout itself, as Python with two extension modules.
#include <dlfcn.h>

#include <cstdio>

#ifndef FANOUT_TEST_STRANGER
#include <fanout/device/registry.hpp>
#endif

#ifdef FANOUT_TEST_LINKED
extern "C" const void* left_registry();
extern "C" const void* right_registry();
#else
static const void* registry_of(const char* path, const char* function) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, function) : nullptr;
  if (!symbol) {
    std::printf("%s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<const void* (*)()>(symbol)();
}
#endif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
#ifdef FANOUT_TEST_LINKED
  (void)argv;
  const void* left = left_registry();
  const void* right = right_registry();
#else
  const void* left = registry_of(argv[1], "left_registry");
  const void* right = registry_of(argv[2], "right_registry");
#endif
#ifdef FANOUT_TEST_STRANGER
  const void* own = left;
#else
  const void* own = &fanout::registry();
#endif
  std::printf("left %p, right %p, own %p\n", left, right, own);
  return left && left == right && left == own ? 0 : 1;
}

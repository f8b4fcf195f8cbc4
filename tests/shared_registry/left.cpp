// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/device/registry.hpp>

// The one symbol that this library, compiled with hidden visibility, means to export.
extern "C" __attribute__((visibility("default"))) const void* left_registry();
const void* left_registry() { return &fanout::registry(); }

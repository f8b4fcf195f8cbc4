// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `traced TRACE ARGUMENT...` runs a program of the gallery in fanout::trace(). objcopy has renamed its main().
#include <fanout/observe.hpp>

extern "C" int program_main(int count, char** arguments);

int main(int count, char** arguments) {
  return fanout::trace(arguments[1], [&] { return program_main(count - 1, arguments + 1); });
}

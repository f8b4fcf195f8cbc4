// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a program of the gallery in fanout::trace(): `traced TRACE ARGUMENT...`. The program's main has another name.
#include <fanout/observe.hpp>

extern "C" int program_main(int count, char** arguments);

int main(int count, char** arguments) {
  return fanout::trace(arguments[1], [&] { return program_main(count - 1, arguments + 1); });
}

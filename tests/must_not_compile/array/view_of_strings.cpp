// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of an array are trivially copyable
#include <string>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Element = char;
#else
using Element = std::string;
#endif

int main() { return sizeof(fanout::View<const Element, 1>) == 0; }

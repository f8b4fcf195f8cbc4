// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of a tensor are trivially copyable and not const
#include <string>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Element = char;
#else
using Element = std::string;
#endif

int main() { return sizeof(fanout::Tensor<Element, 1>) == 0; }

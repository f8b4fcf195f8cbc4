// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: an array has at least one axis; a single number is a scalar
#include <cstddef>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
constexpr std::size_t axes = 1;
#else
constexpr std::size_t axes = 0;
#endif

int main() { return sizeof(fanout::Extents<axes>) == 0; }

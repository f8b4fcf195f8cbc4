// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/gather.hpp>

namespace fanout_test {

/// True if a forward may return values of this type.
template <class X>
concept Gathers = requires {
  typename fanout::gather_traits<fanout::rules::Concatenate, X>::type;
};

}  // namespace fanout_test

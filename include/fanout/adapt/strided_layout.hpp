// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// The layout of a range of rows of an array of layout L: by default L itself, whose mapping must then take strides.
/// Specialise it for a layout_left that is not the standard library's.
template <class L>
struct strided_layout {
  using type = L;
};

}}}  // namespace fanout::v0::backend

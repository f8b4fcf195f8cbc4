// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <string_view>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Adds a line `  Caught std::runtime_error in replica 0: no more memory`, where `where` is ` in replica 0`. Further
/// lines of the exception's own text are indented: it may be that of a ReplicaError.
[[gnu::cold]] FANOUT_INLINE void add_caught(Text& text, const std::exception_ptr& exception,
                                            std::string_view where = {});

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/base/caught_text.ipp>
#endif

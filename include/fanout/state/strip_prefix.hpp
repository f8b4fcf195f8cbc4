// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace fanout { inline namespace v0 {

namespace detail {

/// Takes a prefix off the names of a file.
struct StripPrefix {
  std::string prefix;

  std::string_view operator()(std::string_view name) const noexcept {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }
};

}  // namespace detail

/// For load(): takes this off the front of the names in the file that begin with it. Other names stay. PyTorch's
/// DataParallel writes such names: `load(path, model, strip_prefix("module."))`.
inline detail::StripPrefix strip_prefix(std::string prefix) { return {std::move(prefix)}; }

}}  // namespace fanout::v0

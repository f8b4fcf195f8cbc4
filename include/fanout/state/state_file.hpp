// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/mapped_file.hpp>
#include <fanout/state/parse_header.hpp>
#include <fanout/state/state_header.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/state/strip_prefix.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A file from which a tree is loaded: its tensors, found by their names.
class StateFile {
 public:
  FANOUT_INLINE StateFile(std::string path, const StripPrefix& strip);

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const std::string& path() const noexcept { return path_; }
  std::size_t size() const noexcept { return names_.size(); }
  const HeaderEntry& operator[](std::size_t i) const noexcept { return header_.entries[i]; }
  /// The name of a tensor without the prefix.
  std::string_view name(std::size_t i) const noexcept { return names_[i]; }

  /// The tensor of this name, or `none`.
  std::size_t find(std::string_view name) const noexcept {
    const std::size_t at = first_from(name);
    return at != sorted_.size() && names_[sorted_[at]] == name ? sorted_[at] : none;
  }

  /// True if there is a tensor of this name, or with this name and a dot in front of its own.
  FANOUT_INLINE bool has_tree(std::string_view name) const;

  /// All names, in alphabetical order: `f(name)`.
  template <class F>
  void visit_names_from(std::string_view first, const F& f) const {
    for (std::size_t at = first_from(first); at != sorted_.size() && f(names_[sorted_[at]]);) ++at;
  }

  std::span<const std::byte> elements(std::size_t i) const noexcept {
    const HeaderEntry& entry = header_.entries[i];
    return file_.bytes().subspan(header_.data_begin + entry.begin, entry.end - entry.begin);
  }

  /// Copies the i-th tensor into a leaf of its type and shape, or lets the leaf adopt a mapping of it. Does not wait
  /// for the leaf's device.
  FANOUT_INLINE void copy_to(const StateLeaf<std::byte>& leaf, std::size_t i) const;

 private:
  std::size_t first_from(std::string_view name) const noexcept {
    const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), name,
                                        [this](std::size_t i, std::string_view wanted) { return names_[i] < wanted; });
    return static_cast<std::size_t>(found - sorted_.begin());
  }

  std::string path_;
  MappedFile file_;
  StateHeader header_;
  std::vector<std::string_view> names_;  // of the entries, which they borrow
  std::vector<std::size_t> sorted_;      // by name
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/state_file.ipp>
#endif

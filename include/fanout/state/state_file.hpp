// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/state/byte_order.hpp>
#include <fanout/state/mapped_file.hpp>
#include <fanout/state/parse_header.hpp>
#include <fanout/state/state_header.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/state/strip_prefix.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A file from which a tree is loaded: its tensors, found by their names.
class StateFile {
 public:
  StateFile(std::string path, const StripPrefix& strip)
      : path_(std::move(path)), file_(path_), header_(parse_header(file_.bytes(), path_)) {
    check_byte_order();
    for (const HeaderEntry& entry : header_.entries) names_.push_back(strip(entry.name));
    sorted_.resize(names_.size());
    std::iota(sorted_.begin(), sorted_.end(), std::size_t{0});
    std::sort(sorted_.begin(), sorted_.end(), [this](std::size_t a, std::size_t b) { return names_[a] < names_[b]; });
    for (std::size_t i = 1; i < sorted_.size(); ++i) {
      if (names_[sorted_[i]] != names_[sorted_[i - 1]]) continue;
      throw InvalidArgument(explain(
          {.what = "two tensors of a file have one name without the prefix",
           .where = path_,
           .expected = "each name once",
           .found = '"' + header_.entries[sorted_[i - 1]].name + "\" and \"" + header_.entries[sorted_[i]].name + '"',
           .advice = "choose another prefix for strip_prefix()"}));
    }
  }

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
  bool has_tree(std::string_view name) const {
    if (find(name) != none) return true;
    const std::string front = std::string(name) + '.';
    const std::size_t at = first_from(front);
    return at != sorted_.size() && names_[sorted_[at]].starts_with(front);
  }

  /// All names, in alphabetical order: `f(name)`.
  template <class F>
  void visit_names_from(std::string_view first, const F& f) const {
    for (std::size_t at = first_from(first); at != sorted_.size() && f(names_[sorted_[at]]);) ++at;
  }

  std::span<const std::byte> elements(std::size_t i) const noexcept {
    const HeaderEntry& entry = header_.entries[i];
    return file_.bytes().subspan(header_.data_begin + entry.begin, entry.end - entry.begin);
  }

  /// Copies the i-th tensor into a leaf of its type and shape. Does not wait for the leaf's device.
  void copy_to(const StateLeaf<std::byte>& leaf, std::size_t i) const {
    const std::span<const std::byte> from = elements(i);
    if (leaf.is_text) {
      return leaf.assign(leaf.text, {reinterpret_cast<const char*>(from.data()), from.size()});
    }
    const backend::Memory memory = backend::memory_of(leaf.space);
    const std::byte* next = from.data();
    std::vector<std::byte> bools;
    const auto is_no_bool = [](std::byte byte) { return byte > std::byte{1}; };
    if (leaf.dtype == Dtype::boolean && std::any_of(from.begin(), from.end(), is_no_bool)) {
      for (const std::byte byte : from) bools.push_back(static_cast<std::byte>(byte != std::byte{0}));
      next = bools.data();
    }
    visit_runs(leaf, [&](std::byte* data, std::size_t bytes) {
      backend::transfer(memory, data, host_memory, next, bytes);
      next += bytes;
    });
  }

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

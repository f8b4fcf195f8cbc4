// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fanout { inline namespace v0 {
namespace detail {

/// The text of a map's key in a path: text in quotes, numbers as they are, any other key as `#` and its position in the
/// order.
template <class K>
std::string key_text(const K& key, std::size_t position) {
  if constexpr (requires { std::string_view(key); }) {
    return '"' + std::string(std::string_view(key)) + '"';
  } else if constexpr (requires { std::to_string(key); }) {
    return std::to_string(key);
  } else {
    return "#" + std::to_string(position);
  }
}

}  // namespace detail

/// The place of a leaf in a tree: `output[1].image.noise`. A path is a chain of steps on the stack of the function that
/// walks the tree. So walking costs nothing, and the text is made only for an error. A step borrows its parent and its
/// name or key.
class LeafPath {
 public:
  /// The root of a tree: `output`, `input`.
  constexpr explicit LeafPath(std::string_view root) noexcept
      : LeafPath(nullptr, root.data(), root.size(),
                 [](const void* name, std::size_t size) { return std::string(static_cast<const char*>(name), size); }) {
  }

  /// An element of a tuple, an array or a vector: `parent[index]`.
  constexpr LeafPath(const LeafPath& parent, std::size_t index) noexcept
      : LeafPath(&parent, nullptr, index,
                 [](const void*, std::size_t position) { return "[" + std::to_string(position) + "]"; }) {}

  /// A member or a dict's entry: `parent.name`.
  constexpr LeafPath(const LeafPath& parent, std::string_view name) noexcept
      : LeafPath(&parent, name.data(), name.size(), [](const void* letters, std::size_t size) {
          return "." + std::string(static_cast<const char*>(letters), size);
        }) {}

  /// A map's entry: `parent["key"]`. A key without text is replaced by its position in the order.
  template <class K>
  static constexpr LeafPath at_key(const LeafPath& parent, const K& key, std::size_t position) noexcept {
    return LeafPath(&parent, &key, position, [](const void* borrowed, std::size_t at) {
      return "[" + detail::key_text(*static_cast<const K*>(borrowed), at) + "]";
    });
  }

  friend std::string to_string(const LeafPath& path);

 private:
  /// The text of a step, made of its name or key, and of its size or position.
  using Text = std::string (*)(const void* name, std::size_t size);

  constexpr LeafPath(const LeafPath* parent, const void* name, std::size_t size, Text text) noexcept
      : parent_(parent), name_(name), size_(size), text_(text) {}

  const LeafPath* parent_;
  const void* name_;
  std::size_t size_;
  Text text_;
};

/// The path as text.
inline std::string to_string(const LeafPath& path) {
  const std::string step = path.text_(path.name_, path.size_);
  return path.parent_ == nullptr ? step : to_string(*path.parent_) + step;
}

namespace detail {

// Where the trees of a call begin: constants, so that a call makes none.
inline constexpr LeafPath input_root("input");
template <std::size_t I>
inline constexpr LeafPath input_path{input_root, I};
inline constexpr LeafPath output_root("output");

}  // namespace detail
}}  // namespace fanout::v0

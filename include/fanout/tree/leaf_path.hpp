// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fanout { inline namespace v0 {

/// Where a leaf stands in a tree: `output[1].image.noise`. A path is a chain of steps on the stack of the function that
/// walks the tree, so that walking costs nothing and the text is made only for an error. A step borrows its parent and
/// its name.
class LeafPath {
 public:
  /// The root of a tree: `output`, `input`.
  constexpr explicit LeafPath(std::string_view root) noexcept : name_(root), step_(Step::root) {}

  /// An element of a tuple, an array or a vector: `parent[index]`.
  constexpr LeafPath(const LeafPath& parent, std::size_t index) noexcept
      : parent_(&parent), index_(index), step_(Step::index) {}

  /// A member or a dict's entry: `parent.name`.
  constexpr LeafPath(const LeafPath& parent, std::string_view name) noexcept
      : parent_(&parent), name_(name), step_(Step::name) {}

  /// A map's entry: `parent["key"]`. `key` is the key's text, with quotes if it is to have any.
  static constexpr LeafPath at_key(const LeafPath& parent, std::string_view key) noexcept {
    LeafPath path(parent, key);
    path.step_ = Step::key;
    return path;
  }

  friend std::string to_string(const LeafPath& path);

 private:
  enum class Step : unsigned char { root, index, name, key };

  const LeafPath* parent_ = nullptr;
  std::string_view name_;
  std::size_t index_ = 0;
  Step step_;
};

/// The path as text.
inline std::string to_string(const LeafPath& path) {
  const std::string parent = path.parent_ == nullptr ? std::string() : to_string(*path.parent_);
  switch (path.step_) {
    case LeafPath::Step::root:
      break;
    case LeafPath::Step::index:
      return parent + "[" + std::to_string(path.index_) + "]";
    case LeafPath::Step::name:
      return parent + "." + std::string(path.name_);
    case LeafPath::Step::key:
      return parent + "[" + std::string(path.name_) + "]";
  }
  return std::string(path.name_);
}

/// How a map's key is written in a path: text in quotes, numbers as they are, anything else by its place in the order.
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

namespace detail {

// Where the trees of a call begin: constants, so that a call makes none.
inline constexpr LeafPath input_root("input");
template <std::size_t I>
inline constexpr LeafPath input_path{input_root, I};
inline constexpr LeafPath output_root("output");

}  // namespace detail

}}  // namespace fanout::v0

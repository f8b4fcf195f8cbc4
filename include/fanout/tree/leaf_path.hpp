// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/tree/map_key.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// The text of a map's key in a path, which tells keys apart by value. A key that cannot be compared is its own text,
/// or `#` and its position in the order.
template <class K>
std::string key_text(const K& key, std::size_t position) {
  std::string text;
  if constexpr (is_compared_key<K> && !std::is_array_v<K>) {
    append_key(text, key);
  } else if constexpr (requires { std::string_view(key); }) {
    append_quoted(text, std::string_view(key));
  } else {
    return Text() << '#' << position;
  }
  return text;
}

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_key(const char* what, const std::string& where);

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U;  // so that no number of zeros keeps it 0
  return hash ^ (hash >> 32U);
}

/// Eight letters at once: the paths of thousands of leaves are hashed in a call.
FANOUT_INLINE std::uint64_t mixed(std::uint64_t hash, std::string_view letters) noexcept;

/// Equal keys have the same hash. Throws StructureMismatch for a key that cannot be compared, and for NaN.
template <class K>
std::uint64_t mixed_with_key(std::uint64_t hash, const K& key, [[maybe_unused]] std::size_t position) {
  if constexpr (!is_compared_key<K>) {
    refuse_key("a key that cannot be compared by value", Text() << "#" << position);
  } else if constexpr (TextKey<K>) {
    return mixed(hash, std::string_view(key));
  } else if constexpr (std::integral<K> && sizeof(K) <= sizeof(std::uint64_t)) {
    return mixed(hash, static_cast<std::uint64_t>(key));
  } else {
    if (holds_nan(key)) refuse_key("a key that is NaN", key_text(key, position));
    return mixed(hash, key_text(key, position));
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
      : LeafPath(nullptr, root.data(), root.size(), root_step) {}

  /// An element of a tuple, an array or a vector: `parent[index]`.
  constexpr LeafPath(const LeafPath& parent, std::size_t index) noexcept
      : LeafPath(&parent, nullptr, index, index_step) {}

  /// A member or a dict's entry: `parent.name`.
  constexpr LeafPath(const LeafPath& parent, std::string_view name) noexcept
      : LeafPath(&parent, name.data(), name.size(), name_step) {}

  /// A map's entry: `parent["key"]`. A key that cannot be compared, and is no text, is
  /// replaced by its position in the order.
  template <class K>
  static constexpr LeafPath at_key(const LeafPath& parent, const K& key, std::size_t position) noexcept {
    return LeafPath(&parent, &key, position, key_step<K>);
  }

  friend FANOUT_INLINE std::string to_string(const LeafPath& path);

  /// Mixes the path into a hash, without making its text. Paths of the same text give the same, in all processes.
  std::uint64_t mixed_into(std::uint64_t hash) const {
    for (const LeafPath* at = this; at != nullptr; at = at->parent_) hash = at->step_.mixed(hash, at->name_, at->size_);
    return hash;
  }

 private:
  /// What is made of the name or key of a step, and of its size or position.
  struct Step {
    std::string (*text)(const void* name, std::size_t size);
    std::uint64_t (*mixed)(std::uint64_t hash, const void* name, std::size_t size);
  };

  constexpr LeafPath(const LeafPath* parent, const void* name, std::size_t size, const Step& step) noexcept
      : parent_(parent), name_(name), size_(size), step_(step) {}

  [[gnu::cold]] FANOUT_INLINE static std::string text_of_root(const void* name, std::size_t size);
  [[gnu::cold]] FANOUT_INLINE static std::string text_of_index(const void*, std::size_t index);
  [[gnu::cold]] FANOUT_INLINE static std::string text_of_name(const void* name, std::size_t size);
  template <class K>
  static std::string text_of_key(const void* key, std::size_t position) {
    return detail::Text() << "[" << detail::key_text(*static_cast<const K*>(key), position) << "]";
  }

  FANOUT_INLINE static std::uint64_t mixed_with_name(std::uint64_t hash, const void* name, std::size_t size);
  FANOUT_INLINE static std::uint64_t mixed_with_index(std::uint64_t hash, const void*, std::size_t index);
  template <class K>
  static std::uint64_t mixed_with_key(std::uint64_t hash, const void* key, std::size_t position) {
    return detail::mixed_with_key(hash, *static_cast<const K*>(key), position);
  }

  static constexpr Step root_step{&text_of_root, &mixed_with_name};
  static constexpr Step index_step{&text_of_index, &mixed_with_index};
  static constexpr Step name_step{&text_of_name, &mixed_with_name};
  template <class K>
  static constexpr Step key_step{&text_of_key<K>, &mixed_with_key<K>};

  const LeafPath* parent_;
  const void* name_;
  std::size_t size_;
  const Step& step_;
};

/// The path as text.
[[gnu::cold]] FANOUT_INLINE std::string to_string(const LeafPath& path);

namespace detail {

// Where the trees of a call begin: constants, so that a call makes none.
inline constexpr LeafPath input_root("input");
template <std::size_t I>
inline constexpr LeafPath input_path{input_root, I};
inline constexpr LeafPath output_root("output");

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/tree/leaf_path.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/tree/leaf_path.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

void refuse_key(const char* what, const std::string& where) {
  throw StructureMismatch(
      explain({.what = Text() << "a map has " << what << ", so shards and ranks cannot match their maps",
               .where = where,
               .expected = "numbers other than NaN, enums, texts, and pairs, tuples, containers and structs of these",
               .advice = "use other keys, without pointers; a class with private members lists its fields"}));
}

std::uint64_t mixed(std::uint64_t hash, std::string_view letters) noexcept {
  hash = mixed(hash, letters.size());
  while (!letters.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = letters.size() < sizeof word ? letters.size() : sizeof word;
    std::memcpy(&word, letters.data(), count);
    hash = mixed(hash, word);
    letters.remove_prefix(count);
  }
  return hash;
}

}  // namespace detail

std::string LeafPath::text_of_root(const void* name, std::size_t size) {
  return std::string(static_cast<const char*>(name), size);
}

std::string LeafPath::text_of_index(const void*, std::size_t index) { return detail::Text() << "[" << index << "]"; }

std::string LeafPath::text_of_name(const void* name, std::size_t size) {
  return detail::Text() << "." << text_of_root(name, size);
}

std::uint64_t LeafPath::mixed_with_name(std::uint64_t hash, const void* name, std::size_t size) {
  return detail::mixed(hash, std::string_view(static_cast<const char*>(name), size));
}

std::uint64_t LeafPath::mixed_with_index(std::uint64_t hash, const void*, std::size_t index) {
  return detail::mixed(hash, std::uint64_t{index});
}

std::string to_string(const LeafPath& path) {
  const std::string step = path.step_.text(path.name_, path.size_);
  return path.parent_ == nullptr ? step : to_string(*path.parent_) + step;
}

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/state_file.hpp>

#include <numeric>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/state/byte_order.hpp>

namespace fanout { inline namespace v0 { namespace detail {

StateFile::StateFile(std::string path, const StripPrefix& strip)
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

bool StateFile::has_tree(std::string_view name) const {
  if (find(name) != none) return true;
  const std::string front = std::string(name) + '.';
  const std::size_t at = first_from(front);
  return at != sorted_.size() && names_[sorted_[at]].starts_with(front);
}

void StateFile::copy_to(const StateLeaf<std::byte>& leaf, std::size_t i) const {
  const std::span<const std::byte> from = elements(i);
  if (leaf.is_text) {
    return leaf.assign(leaf.text, {reinterpret_cast<const char*>(from.data()), from.size()});
  }
  const std::byte* next = from.data();
  std::vector<std::byte> bools;
  const auto is_no_bool = [](std::byte byte) { return byte > std::byte{1}; };
  if (leaf.adopt != nullptr && leaf.space == host_memory && leaf.dtype != Dtype::boolean && !from.empty()) {
    const auto begin = static_cast<std::size_t>(next - file_.bytes().data());
    if (begin % size_of(leaf.dtype) == 0) {
      return leaf.adopt(leaf.tensor, file_.map(begin, from.size()), &MappedFile::unmap);
    }
  }
  const backend::Memory memory = backend::memory_of(leaf.space);
  if (leaf.dtype == Dtype::boolean && std::any_of(from.begin(), from.end(), is_no_bool)) {
    for (const std::byte byte : from) bools.push_back(static_cast<std::byte>(byte != std::byte{0}));
    next = bools.data();
  }
  visit_runs(leaf, [&](std::byte* data, std::size_t bytes) {
    backend::transfer(memory, data, host_memory, next, bytes);
    next += bytes;
  });
}

}}}  // namespace fanout::v0::detail

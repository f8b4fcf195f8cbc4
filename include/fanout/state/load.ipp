// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/load.hpp>

#include <algorithm>

#include <fanout/base/error.hpp>
#include <fanout/state/dtype.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void StateComparison::add(const StateLeaf<const std::byte>& leaf) {
  const std::size_t i = file_.find(leaf.name);
  if (i == StateFile::none) {
    differences_.missing.emplace_back(leaf.name);
  } else {
    if (is_used_[i]) refuse_name_twice(std::string(leaf.name));
    is_used_[i] = true;
    compare(leaf, file_[i]);
  }
  const backend::Memory memory = backend::memory_of(leaf.space);
  if (!backend::can_transfer(memory, host_memory)) {
    refuse_transfer(leaf.space, host_memory);
  }
}

void StateComparison::check() {
  for (std::size_t i = 0; i < file_.size(); ++i) {
    if (!is_used_[i]) differences_.unexpected.emplace_back(file_.name(i));
  }
  if (differences_.none()) return;
  advise();
  throw StateMismatch(std::move(differences_), file_.path());
}

void StateComparison::compare(const StateLeaf<const std::byte>& leaf, const HeaderEntry& entry) {
  if (fits(leaf, entry)) return;
  const std::string name(leaf.name);
  if (!has_shape_for(leaf, entry)) {
    differences_.texts.push_back("size mismatch for " + name + ": copying a param with shape " +
                                 shape_text(entry.shape) + " from checkpoint, the shape in current model is " +
                                 shape_text(leaf.shape) + ".");
  }
  if (entry.dtype != leaf.dtype) {
    differences_.texts.push_back("type mismatch for " + name + ": copying a param of type " +
                                 std::string(name_of(entry.dtype)) + " from checkpoint, the type in current model is " +
                                 std::string(name_of(leaf.dtype)) + ".");
  }
  differences_.mismatched.push_back(name);
}

void StateComparison::advise() {
  if (differences_.missing.empty()) return;
  const std::string& first = differences_.missing[0];
  for (const std::string& candidate : differences_.unexpected) {
    if (!candidate.ends_with(first) || candidate == first) continue;
    const std::string prefix = candidate.substr(0, candidate.size() - first.size());
    const bool is_prefix = std::all_of(differences_.missing.begin(), differences_.missing.end(),
                                       [&](const auto& name) { return file_.find(prefix + name) != StateFile::none; });
    if (!is_prefix) continue;
    std::string& advice = differences_.advice;
    advice = "The names in the file begin with \"";
    advice += prefix;
    advice += "\": load it with strip_prefix(\"";
    advice += prefix;
    advice += "\").";
    return;
  }
}

void StateReader::read(const StateLeaf<std::byte>& leaf) {
  const std::size_t i = file_.find(leaf.name);
  if (i == StateFile::none || !fits(leaf, file_[i])) {
    throw Error(explain({.what = "a tree was changed while a state was loaded into it",
                         .where = std::string(leaf.name),
                         .advice = "let no other thread change it meanwhile"}));
  }
  file_.copy_to(leaf, i);
  if (std::find(spaces_.begin(), spaces_.end(), leaf.space) == spaces_.end()) spaces_.push_back(leaf.space);
}

}}}  // namespace fanout::v0::detail

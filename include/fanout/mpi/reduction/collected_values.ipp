// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/reduction/collected_values.hpp>

#include <fanout/base/error.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void CollectedValues::add(const backend::RankedValue& value, const LeafPath& path) {
  if (value.fold->element_size == 0) {
    throw Error(explain({.what = "a value is combined over ranks that cannot be sent as bytes",
                         .where = to_string(path),
                         .expected = "numbers, arrays of numbers, or a trivially copyable type whose alignment is at "
                                     "most " +
                                     std::to_string(backend::RankFold::largest_alignment),
                         .found = value.fold->name()}));
  }
  values_.push_back(value);
  mix(hash_of(*value.fold));
  mix(path.mixed_into(backend::RankedStep::hash_of_nothing));
  mix(value.axes);
  for (std::size_t axis = 0; axis < value.axes; ++axis) mix(value.extents[axis]);
}

std::span<const backend::RankedValue> CollectedValues::on_host() {
  for (backend::RankedValue& value : values_) {
    if (value.space == host_memory) continue;
    const Copy& copy = copies_.emplace_back(Copy{value, Storage(backend::Memory{}, bytes(value))});
    backend::transfer(backend::Memory{}, copy.here.data(), value.space, value.data, bytes(value));
    value.data = copy.here.data();
  }
  return values_;
}

void CollectedValues::back_to_devices() const {
  for (const Copy& copy : copies_) {
    const backend::RankedValue& there = copy.of;
    backend::transfer(backend::memory_of(there.space), there.data, host_memory, copy.here.data(), bytes(there));
  }
}

std::uint64_t CollectedValues::hash_of(const backend::RankFold& fold) {
  for (const auto& [known, hash] : folds_) {
    if (known == &fold) return hash;
  }
  return folds_.emplace_back(&fold, backend::RankedStep::hash_of(fold.name())).second;
}

void DescribedValues::add(const backend::RankedValue& value, const LeafPath& path) {
  text += (text.empty() ? ": " : ", ") + value.fold->name();
  for (std::size_t axis = 0; axis < value.axes; ++axis) {
    text += (axis == 0 ? "[" : ", ") + std::to_string(value.extents[axis]);
  }
  if (value.axes != 0) text += "]";
  text += " at " + to_string(path);
}

std::string described(const backend::RankedStep& step) {
  DescribedValues values;
  if (step.visit != nullptr) step.visit(step.of, values);
  std::string text = "model " + std::to_string(step.model);
  if (step.number != backend::RankedStep::no_number) text += ", call " + std::to_string(step.number);
  text += ": ";
  text += step.name;
  if (!step.returns.empty()) (text += " returns ") += step.returns;
  return text + values.text;
}

}}}  // namespace fanout::v0::detail

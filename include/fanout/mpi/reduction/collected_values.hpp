// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/reduction/pool_allocator.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The values of one step, and a hash of what they are, without their elements.
class CollectedValues final : public backend::RankedValues {
 public:
  void add(const backend::RankedValue& value, const LeafPath& path) override {
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

  std::uint64_t hash() const noexcept { return hash_; }

  /// Takes out the values for which `is(value)` is true.
  template <class Is>
  std::vector<backend::RankedValue> take_if(const Is& is) {
    std::vector<backend::RankedValue> taken;
    std::erase_if(values_, [&](const backend::RankedValue& value) {
      if (!is(value)) return false;
      taken.push_back(value);
      return true;
    });
    return taken;
  }

  /// The values, or copies of those in device memory. Call it once.
  std::span<const backend::RankedValue> on_host() {
    for (backend::RankedValue& value : values_) {
      if (value.space == host_memory) continue;
      const Copy& copy = copies_.emplace_back(Copy{value, Storage(backend::Memory{}, bytes(value))});
      backend::transfer(backend::Memory{}, copy.here.data(), value.space, value.data, bytes(value));
      value.data = copy.here.data();
    }
    return values_;
  }

  /// Copies what was copied by on_host() back to where it came from.
  void back_to_devices() const {
    for (const Copy& copy : copies_) {
      const backend::RankedValue& there = copy.of;
      backend::transfer(backend::memory_of(there.space), there.data, host_memory, copy.here.data(), bytes(there));
    }
  }

 private:
  static std::size_t bytes(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }
  void mix(std::uint64_t word) noexcept { backend::RankedStep::mix(hash_, word); }

  /// That of the fold's name, which has the rule and the type. It is made once for each fold: values have few of them.
  std::uint64_t hash_of(const backend::RankFold& fold) {
    for (const auto& [known, hash] : folds_) {
      if (known == &fold) return hash;
    }
    return folds_.emplace_back(&fold, backend::RankedStep::hash_of(fold.name())).second;
  }

  struct Copy {
    backend::RankedValue of;
    Storage here;
  };

  std::vector<backend::RankedValue, PoolAllocator<backend::RankedValue>> values_;
  std::deque<Copy> copies_;
  std::vector<std::pair<const backend::RankFold*, std::uint64_t>> folds_;
  std::uint64_t hash_ = backend::RankedStep::hash_of_nothing;
};

/// Text of values: `psum of float[3, 4] at output.x`.
class DescribedValues final : public backend::RankedValues {
 public:
  void add(const backend::RankedValue& value, const LeafPath& path) override {
    text += (text.empty() ? ": " : ", ") + value.fold->name();
    for (std::size_t axis = 0; axis < value.axes; ++axis) {
      text += (axis == 0 ? "[" : ", ") + std::to_string(value.extents[axis]);
    }
    if (value.axes != 0) text += "]";
    text += " at " + to_string(path);
  }

  std::string text;
};

/// `model 0, call 3: Network returns ...: psum of float[3, 4] at output.x`
inline std::string described(const backend::RankedStep& step) {
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

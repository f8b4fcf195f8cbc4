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

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The values of one step, and a hash of what they are, without their elements.
class CollectedValues final : public backend::RankedValues {
 public:
  FANOUT_INLINE void add(const backend::RankedValue& value, const LeafPath& path) override;

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
  FANOUT_INLINE std::span<const backend::RankedValue> on_host();

  /// Copies what was copied by on_host() back to where it came from.
  FANOUT_INLINE void back_to_devices() const;

 private:
  static std::size_t bytes(const backend::RankedValue& value) noexcept {
    return value.count * value.fold->element_size;
  }
  void mix(std::uint64_t word) noexcept { backend::RankedStep::mix(hash_, word); }

  /// That of the fold's name, which has the rule and the type. It is made once for each fold: values have few of them.
  FANOUT_INLINE std::uint64_t hash_of(const backend::RankFold& fold);

  struct Copy {
    backend::RankedValue of;
    Storage here;
  };

  PoolVector<backend::RankedValue> values_;
  std::deque<Copy> copies_;
  std::vector<std::pair<const backend::RankFold*, std::uint64_t>> folds_;
  std::uint64_t hash_ = backend::RankedStep::hash_of_nothing;
};

/// Values that a library combines in place of OrderedReduction.
class TakenValues {
 public:
  TakenValues() = default;
  TakenValues(const TakenValues&) = delete;
  TakenValues& operator=(const TakenValues&) = delete;
  virtual ~TakenValues() = default;

  /// `counts`: false if this rank has no rows, but another rank has. Waits for all ranks.
  virtual void run(bool counts) = 0;
  /// Copies the results to where the values are. Call it after run().
  virtual void finish() const = 0;
};

/// Text of values: `psum of float[3, 4] at output.x`.
class DescribedValues final : public backend::RankedValues {
 public:
  FANOUT_INLINE void add(const backend::RankedValue& value, const LeafPath& path) override;

  std::string text;
};

/// `model 0, call 3: Network returns ...: psum of float[3, 4] at output.x`
FANOUT_INLINE std::string described(const backend::RankedStep& step);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/reduction/collected_values.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/memory/pool_allocator.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What the reductions of a batch have come to over the micro-batches so far. Those of a micro-batch are combined with
/// them as soon as it has ended, in the order of the micro-batches.
class BatchReductions final : public backend::RankedValues {
 public:
  /// Call this before the values of each micro-batch are added. Those of the `last` one then become those of the batch.
  void begin(bool last) noexcept {
    is_last_ = last;
    is_first_ = next_ == 0 && values_.empty();
    next_ = 0;
  }

  /// Throws ShapeMismatch if an array has other extents than in the micro-batch before. Throws Error for values that
  /// are not trivially copyable.
  FANOUT_INLINE void add(const backend::RankedValue& value, const LeafPath& path) override;

 private:
  struct Combined {
    Storage bytes;
    PoolVector<std::size_t> extents;
  };

  PoolVector<Combined> values_;
  std::size_t next_ = 0;  // of the value that is added
  bool is_first_ = true;
  bool is_last_ = false;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/stages/batch_reductions.ipp>
#endif

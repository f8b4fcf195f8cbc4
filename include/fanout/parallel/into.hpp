// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/parallel/on_all.hpp>
#include <fanout/parallel/write_into.hpp>
#include <fanout/scatter/overlap.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

/// Calls a model and writes the results into a destination. ParallelModel::into() makes it. Borrows the model, and the
/// destination if D is a reference.
template <class Model, class D>
class Into {
 public:
  Into(const Model& model, D to) : model_(model), to_(std::forward<D>(to)) {}

  /// Calls the model, writes its result into the destination, and returns nothing. First waits for what this thread has
  /// done with the destination's memory. Then waits and throws as the model's call does. After an exception the
  /// contents of the destination are unspecified. Throws ShapeMismatch or StructureMismatch if the result does not fit
  /// into the destination. Throws DeviceMismatch if the result cannot be copied to the destination's memory. Throws
  /// InvalidArgument, before anything runs, if arrays of the destination overlap. Throws it also if an argument shows
  /// memory of a Tensor or View of the destination, except an inout() of the same rows.
  template <class... Args>
  void operator()(Args&&... args) {
    write(false, args...);
  }
  /// The same, but runs on every device if no argument is split.
  template <class... Args>
  void operator()(detail::OnAll, Args&&... args) {
    write(true, args...);
  }

 private:
  /// Where the results are gathered: where all tensors of the destination are, so that they take no way round.
  /// Otherwise, and for sums that devices make for each other, where the model's results usually are.
  backend::Memory memory_for(const detail::CallSettings& usual, const detail::SmallVector<detail::ShownMemory>& shown) {
    const MemorySpace* space = nullptr;
    for (const detail::ShownMemory& array : shown) {
      if (!array.written) continue;
      if (space != nullptr && !(array.space == *space)) return usual.target;
      space = &array.space;
    }
    if (space == nullptr || *space == usual.target.space || usual.collectives != nullptr) return usual.target;
    if (*space == host_memory) return {};
    for (const DeviceId& id : model_.devices().ids()) {
      if (id == space->owner) return backend::memory_of(*space);
    }
    return usual.target;
  }

  template <class... Args>
  void write(bool on_all, Args&... args) {
    using R = decltype(model_.run(detail::WholeBatch(), detail::plain_request, args...));
    static_assert(!std::is_void_v<R>, "fanout: forward returns nothing that could be written into a destination");
    if constexpr (!std::is_void_v<R>) {
      detail::SmallVector<detail::ShownMemory> shown;
      detail::ListShown list{shown};
      detail::VisitTargets<detail::ListShown>{list}(to_, detail::output_root);
      detail::check_destination(to_, shown, args...);
      detail::CallRequest request{.on_all = on_all};
      backend::Memory results = model_.state_->settings.target;
      if constexpr (Model::device_set::has_own_memories) {
        results = memory_for(model_.state_->settings, shown);
        request.memory = &results;
      }
      detail::SmallVector<detail::OutputTarget> targets;
      for (const detail::ShownMemory& array : shown) {
        if (array.written) targets.push_back(detail::target_in(results, array));
      }
      backend::wait_for(results);
      request.targets = targets.begin();
      request.target_count = targets.size();
      R result = model_.run(detail::WholeBatch(), request, args...);
      detail::write_into(to_, result, model_.state_->replicas.table());
    }
  }

  const Model& model_;
  D to_;
};

}}  // namespace fanout::v0

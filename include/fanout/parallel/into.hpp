// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/base/small_vector.hpp>
#include <fanout/dispatch/copy_team.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/parallel/call_request.hpp>
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

  /// Calls the model, writes its result into the destination, and returns nothing. Waits and throws as the model's call
  /// does. After an exception the contents of the destination are unspecified. Throws ShapeMismatch or
  /// StructureMismatch if the result does not fit into the destination. Throws DeviceMismatch if the result cannot be
  /// copied to the destination's memory. Throws InvalidArgument, before anything runs, if arrays of the destination
  /// overlap. Throws it also if an argument shows memory of a Tensor or View of the destination, except an inout() of
  /// the same rows.
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
  template <class... Args>
  void write(bool on_all, Args&... args) {
    using R = decltype(model_.run(detail::plain_request, args...));
    static_assert(!std::is_void_v<R>, "fanout: forward returns nothing that could be written into a destination");
    if constexpr (!std::is_void_v<R>) {
      detail::SmallVector<detail::OutputTarget> targets;
      detail::SmallVector<detail::ShownMemory> memory;
      const backend::Memory& results = model_.state_->settings.target;
      detail::CollectTargets collect{results, targets, memory};
      detail::VisitTargets<detail::CollectTargets>{collect}(to_, detail::output_root);
      detail::check_destination(to_, memory, args...);
      backend::wait_for(results);
      R result = model_.run({.on_all = on_all, .targets = targets.begin(), .target_count = targets.size()}, args...);
      detail::write_into(to_, result, detail::CopyTeam(model_.devices()));
    }
  }

  const Model& model_;
  D to_;
};

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_steps.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/parallel/model_state.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/stages/batch_reductions.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Rows of the output buffers of a whole batch, for a micro-batch.
struct RowsOfOutputs : OutputSource {
  /// `first` is the row of the whole buffers that is row 0. The buffers of `of` are in the micro-batch's memory.
  RowsOfOutputs(OutputBuffers& of, const backend::Memory& in, std::size_t all, std::size_t first) noexcept
      : OutputSource{&make_rows}, whole(of), memory(in), whole_rows(all), first_row(first) {}

  static OutputBuffer* make_rows(const OutputSource& source, std::size_t n, std::size_t rows, std::size_t row_bytes) {
    const auto& part = static_cast<const RowsOfOutputs&>(source);
    const backend::MemoryOperations* const windows = windows_in(part.memory);
    if (windows == nullptr) return nullptr;
    const OutputBuffers::Place& whole = part.whole.get(n, part.whole_rows, row_bytes);
    if (whole.row_bytes != row_bytes) return nullptr;
    whole.buffer->retain();
    Storage window({part.memory.space, windows}, whole.buffer->row(part.first_row), rows * row_bytes, whole.buffer);
    return new OutputBuffer(std::move(window), rows, row_bytes);
  }

  OutputBuffers& whole;
  const backend::Memory& memory;
  std::size_t whole_rows;
  std::size_t first_row;
};

/// Rows of a pipeline's batch that a stage takes in one call: see WholeBatch. Borrows what it points to.
struct MicroBatch {
  RowRange rows;
  std::size_t batch_rows = 0;
  std::uint32_t call_number = 0;          ///< of the batch at this stage
  CallTimes::Step step = {};              ///< for observers
  bool is_last = false;                   ///< of the batch
  bool takes_whole = false;               ///< the arguments are those of the whole batch
  bool is_for_each = false;               ///< each device takes all rows
  OutputBuffers* whole = nullptr;         ///< of the batch, for the last stage
  BatchReductions* reductions = nullptr;  ///< of the batch, for the last stage

  /// The steps of such a call, in place of CallSteps.
  class Steps {
   public:
    explicit Steps(const MicroBatch& batch) noexcept
        : batch_(batch),
          place_{.first_row = batch.rows.first,
                 .first_shard = 0,
                 .other_rows = batch.batch_rows - batch.rows.size(),
                 .other_shards = 0,
                 .first_in_arguments = batch.takes_whole ? batch.rows.first : 0} {}
    static constexpr bool has_others() noexcept { return false; }
    static constexpr std::size_t rank() noexcept { return 0; }
    void begin(CallFrame& call) noexcept {
      call.number = batch_.call_number;
      call.place = &place_;
      if (batch_.whole == nullptr) return;
      rows_.emplace(*batch_.whole, call.target, batch_.batch_rows, batch_.rows.first);
      call.outputs.made_by(*rows_);
    }
    static void join() noexcept {}
    template <class Visit>
    void combine(const Visit& visit) {
      if (batch_.reductions == nullptr) return;
      batch_.reductions->begin(batch_.is_last);
      show_values<Visit>(&visit, *batch_.reductions);
    }
    static void fail() noexcept {}

   private:
    const MicroBatch& batch_;
    const BatchPlace place_;
    std::optional<RowsOfOutputs> rows_;
  };

  static constexpr bool is_whole = false;
  /// Throws Error if shards have collectives: which micro-batches would meet depends on the threads.
  template <class Call, class State>
  Steps steps(State&) const {
    if (Call::shards_may_meet()) refuse_collectives();
    return Steps(*this);
  }
  MeasuredStart measured(MeasuredStart call) const noexcept {
    call.step = step;
    return call;
  }
  /// Throws ShapeMismatch if the stage before has returned another number of rows.
  CountRows count(const CountRows& arguments) const {
    if (!takes_whole && arguments.rows != rows.size()) refuse_rows(arguments.rows);
    if (is_for_each) return {.plan = arguments.plan};
    return {.rows = rows.size(), .plan = arguments.plan};
  }
  /// The pipeline has entered the model for all micro-batches.
  template <class State>
  static void enter(EnteredModel&, State&, CallOrder) noexcept {}

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_collectives() {
    throw Error(explain({.what = "a model with collectives cannot be a stage of a pipeline",
                         .advice = "call it as a ParallelModel, or return reductions from the last stage"}));
  }
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_rows(const std::optional<std::size_t>& found) const {
    throw ShapeMismatch(explain({.what = "the stage before returned another number of rows than it took",
                                 .expected = Text() << rows.size() << " rows",
                                 .found = found ? std::to_string(*found) : std::string("no array with rows")}));
  }
};

}}}  // namespace fanout::v0::detail

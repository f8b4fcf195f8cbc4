// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/context/context.hpp>
#include <fanout/context/random_stream.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// The Context of one shard of a call of a `Model`, which runs on a device of kind D. Borrows the device, the call and
/// the scratch memory. It converts to `ShardContext<D>&`, which a `forward` of any model may take.
template <Device D, class Model = void>
class ShardContext;

template <Device D>
class ShardContext<D, void> {
 public:
  ShardContext(const D& device, detail::CallFrame& call, std::size_t shard, detail::Scratch& scratch) noexcept
      : ShardContext(device, call, shard, call.plan[shard].rows, scratch) {}
  /// The same if the caller knows the shard's rows.
  ShardContext(const D& device, detail::CallFrame& call, std::size_t shard, const RowRange& rows,
               detail::Scratch& scratch) noexcept
      : device_(device), call_(call), scratch_(scratch), shard_(shard), rows_(rows) {}
  ShardContext(const ShardContext&) = delete;
  ShardContext& operator=(const ShardContext&) = delete;

  const D& device() const noexcept { return device_; }
  std::size_t rank() const noexcept { return call_.place->first_shard + shard_; }
  std::size_t size() const noexcept { return call_.plan.size() + call_.place->other_shards; }
  RowRange rows() const noexcept { return call_.place->in_batch(rows_); }

  /// The stream of the device's work, if the device has one.
  auto stream() const requires requires(const D& device) { device.stream(); }
  { return device_.stream(); }

  /// The random stream of the shard's row `row`, counted from its first row. Throws InvalidArgument if the shard does
  /// not have this row. Row 0 is always allowed: RandomStream::after() counts from it.
  RandomStream random(std::size_t row) const {
    if (row >= rows_.size() && row != 0) refuse_random(row);
    return {call_.settings.seed, call_.number, rows().first + row};
  }

  /// True from the deadline of the call on, or from that of a call around it.
  bool stop_requested() const noexcept { return call_.stop_requested(); }

  template <class C = ShardCommunicator>
  auto communicator() const {
    static_assert(std::is_void_v<C>,
                  "fanout: ctx.communicator() needs a context that names its model, since a call must know whether its "
                  "shards wait for each other; declare it as `fanout::Context auto& ctx`, or as "
                  "`fanout::ShardContext<fanout::HostDevice, MyModel>& ctx`");
    if constexpr (requires { sizeof(C); }) return C(rendezvous(), shard_, rank(), 1);  // so that this is the only error
  }

  struct Claim {
    detail::OutputBuffer& buffer;
    RowRange rows;  ///< the rows of the buffer
    std::byte* first;
  };
  Claim claim_output(std::size_t row_bytes) {
    const std::size_t n = outputs_++;
    if (device_.memory().space == call_.outputs.space()) {
      const detail::OutputBuffers::Place* const found = call_.outputs.find(n);
      const detail::OutputBuffers::Place& shared = found != nullptr ? *found : make_output(n, row_bytes);
      if (shared.row_bytes == row_bytes) return {*shared.buffer, rows_, shared.first + rows_.first * row_bytes};
    }
    return claim_own(n, row_bytes);
  }

  void* claim_scratch(std::size_t bytes) { return scratch_.allocate(device_.memory(), bytes); }

 protected:
  detail::CallRendezvous& rendezvous() const noexcept { return call_.rendezvous; }
  std::size_t shard_in_process() const noexcept { return shard_; }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_random(std::size_t row) const {
    detail::Text expected;
    if (rows_.empty()) {
      expected << "row 0 in a shard without rows";
    } else {
      expected << "a row from 0 to " << rows_.size() - 1 << ", counted from the shard's first one";
    }
    throw InvalidArgument(explain({.what = "random numbers of a row that the shard does not have",
                                   .where = "ctx.random",
                                   .expected = expected,
                                   .found = detail::Text() << row,
                                   .advice = "for a row of the whole batch, pass ctx.rows().local(row)"}));
  }

  [[gnu::noinline]] const detail::OutputBuffers::Place& make_output(std::size_t n, std::size_t row_bytes) {
    return call_.outputs.get(n, call_.plan.rows(), row_bytes);
  }

  /// For another memory, or if the shards' n-th outputs differ in row size: the shard gets a buffer of its own rows,
  /// and gather() copies them.
  [[gnu::noinline]] Claim claim_own(std::size_t n, std::size_t row_bytes) {
    detail::OutputBuffer& own = scratch_.make_buffer(device_.memory(), rows_.size(), row_bytes);
    own.number_is(n);
    return {own, {0, rows_.size()}, own.row(0)};
  }

  const D& device_;
  detail::CallFrame& call_;
  detail::Scratch& scratch_;
  std::size_t shard_;
  RowRange rows_;
  std::size_t outputs_ = 0;
};

namespace detail {
template <Device D>
using ContextOfAnyModel = ShardContext<D>;
}

template <Device D, class Model>
class ShardContext : public detail::ContextOfAnyModel<D> {
 public:
  using ShardContext<D>::ShardContext;

  /// The communicator of the shards of this call, for collectives while they run: see ShardCommunicator. Needs
  /// <fanout/context/collectives.hpp>. Valid until `forward` returns. Throws Error if the code was loaded after the
  /// call had begun.
  template <class C = ShardCommunicator>
  auto communicator() const {
    constexpr bool known = requires { sizeof(C); };
    static_assert(known, "fanout: ctx.communicator() needs #include <fanout/context/collectives.hpp>");
    if constexpr (known) {
      static_cast<void>(detail::notes_meeting_in<ShardContext>);
      return C(this->rendezvous(), this->shard_in_process(), this->rank(), this->size());
    }
  }
};

}}  // namespace fanout::v0

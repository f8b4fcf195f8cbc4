// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/array/view.hpp>
#include <fanout/collective/collective.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// One rank's side of a row of ranks that pass arrays to each other: threads of a process, devices. Each rank has its
/// own and uses it from one thread at a time.
///
/// 1. `rank()` is this one's position and `size()` the number of ranks: 0 <= rank < size. Neither changes.
/// 2. Collectives are called by all ranks, in the same order, with arrays of the same extents and element type, the
///    same root and the same reduction. Whether a call has ended when it returns, or is in order with the rank's
///    device, is the communicator's to say; a rank may read what it got, by work on its device, after the call.
/// 3. `broadcast(x, root)`: the root's elements become everyone's. `reduce(x, root, by)`: the root's become what the
///    reduction makes of everyone's; those of the others stay. `all_reduce(x, by)`: everyone's become that.
/// 4. `all_gather(from, to)`: `to` becomes everyone's `from`, one after the other in the order of the ranks.
///    `reduce_scatter(from, to, by)`: `from` has a part for each rank, in their order; `to` becomes what the reduction
///    makes of everyone's part for this rank. `to` may be the part of `from` that is for this rank, and `from` the part
///    of `to` that comes from it; else they share no element.
/// 5. `send(x, to)` and `recv(x, from)` are between two ranks: the n-th send from one rank to another is received by
///    the n-th recv there from that one. Each waits for the other. Ranks that exchange arrays group the two calls.
/// 6. `barrier()` returns when all ranks have called it.
/// 7. `group()` returns a guard. What is called while it lives starts together when it ends, or when its `end()` is
///    called, and has run as 2. says when that returns: in an order that does not deadlock, whatever the order of the
///    calls to send and recv. Its calls use each other's arrays only to read, and these live until then. A guard inside
///    another leaves its calls to that one. Where an exception ends it, its calls are not made.
/// 8. Reductions combine numbers in an order that does not depend on time, so a result is the same in every run.
template <class C>
concept Communicator = requires(C& c, View<float, 1> x, View<const float, 1> from, std::size_t rank, Reduction by) {
  { c.rank() } -> std::same_as<std::size_t>;
  { c.size() } -> std::same_as<std::size_t>;
  c.broadcast(x, rank);
  c.reduce(x, rank, by);
  c.all_reduce(x, by);
  c.all_gather(from, x);
  c.reduce_scatter(from, x, by);
  c.send(from, rank);
  c.recv(x, rank);
  c.barrier();
  c.group().end();
};

}}}  // namespace fanout::v0::backend

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/array/view.hpp>
#include <fanout/collective/collective.hpp>

namespace fanout { inline namespace v0 { namespace backend {

/// One rank's side of a group of ranks, which are threads of a process or devices. Each rank has its own communicator
/// and uses it from one thread at a time. Arrays are contiguous.
///
/// 1. `rank()` is the position of this rank and `size()` the number of ranks: 0 <= rank < size. Neither changes.
/// 2. All ranks call the collectives in the same order, with the same extents, element type, root and reduction. The
///    communicator defines if a call has run when it returns, or is in order with the rank's device. After the call,
///    work on the rank's device may read the result.
/// 3. `broadcast(x, root)`: all ranks get the root's elements. `reduce(x, root, by)`: the root gets the reduced
///    elements of all ranks; the other ranks keep theirs. `all_reduce(x, by)`: all ranks get them.
/// 4. `all_gather(from, to)`: `to` gets the `from` of all ranks, in the order of the ranks.
///    `reduce_scatter(from, to, by)`: `from` has one part per rank, in their order; `to` gets the reduction of all
///    ranks' parts for this rank. In `all_gather`, `from` may be this rank's part of `to`. In `reduce_scatter`, `to`
///    may be this rank's part of `from`. Otherwise they must share no element.
/// 5. `send(x, to)` and `recv(x, from)` are between two ranks: recv number n from a rank gets send number n of that
///    rank to this one. Each waits for the other. Ranks that exchange arrays must group the two calls.
/// 6. `barrier()` returns when all ranks have called it.
/// 7. `group()` returns a guard. Calls made while it lives start together when it ends, or when its `end()` is called,
///    which returns as item 2 says. They do not deadlock, whatever the order of send and recv. Calls of a group may
///    share arrays only to read them. The arrays must live until the group ends. A guard inside another one leaves its
///    calls to the outer one. If an exception ends the guard, its calls are dropped.
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

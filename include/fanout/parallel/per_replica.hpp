// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <utility>

#include <fanout/parallel/original.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout::inline v0 {

/// A model that every device has a copy of; see per_replica().
template <class M>
struct PerReplica {
  M model;
};

/// Gives each device a copy of its own also of a model with a const `forward`, which host devices would share: for
/// models with `mutable` caches, or with data that is better read from each core's own memory:
///
///     fanout::ParallelModel model{fanout::per_replica(Model{...}), fanout::host_devices(2)};
///
/// The model is treated as if its `forward` were not const: each replica copies it at its first call and again after an
/// update(), and runs one call at a time, so what is `mutable` needs no lock. It must be copyable.
template <class M>
PerReplica<M> per_replica(M model) {
  return {std::move(model)};
}

template <class M>
struct Original<PerReplica<M>> {
  using model_type = M;
  static constexpr bool shared = false;

  explicit Original(PerReplica<M>&& from) : model(std::move(from.model)) {}
  Original(const Original&) = delete;
  Original& operator=(const Original&) = delete;

  M model;
  Atomic<std::uint64_t> version{0};
};

}  // namespace fanout::inline v0

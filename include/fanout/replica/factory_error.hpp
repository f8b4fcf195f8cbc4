// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/base/requirements.hpp>
#include <fanout/call/replica_error.hpp>

namespace fanout { inline namespace v0 {

// clang-format off
// Version 14 takes the class for an expression.

/// Thrown if a factory fails on one or more devices. By then its calls have ended on all devices, and the models that
/// it made are destroyed. The failures name the devices, in the order of the set. They have no rows.
class [[gnu::visibility("default")]] FactoryError : public ReplicaError {
 public:
  /// `failures` must not be empty. `replicas` is the number of models that were to be made.
  explicit FactoryError(std::vector<Failure> failures, std::size_t replicas)
      : ReplicaError("the factory", std::move(failures), replicas, false) {}
};

// clang-format on

}}  // namespace fanout::v0

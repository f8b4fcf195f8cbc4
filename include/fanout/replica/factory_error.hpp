// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/base/annotate.hpp>
#include <fanout/call/replica_error.hpp>

namespace fanout { inline namespace v0 {

/// Thrown when a factory failed on one or more devices, after it has ended on all of them and what it had made is
/// destroyed. Its failures name the devices, in the order of the set; they have no rows.
class FANOUT_EXPORT FactoryError : public ReplicaError {
 public:
  /// `failures` is not empty; `replicas` is how many were to be made.
  explicit FactoryError(std::vector<Failure> failures, std::size_t replicas)
      : ReplicaError("the factory", std::move(failures), replicas, false) {}
};

}}  // namespace fanout::v0

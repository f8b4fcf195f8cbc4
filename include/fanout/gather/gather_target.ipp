// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/gather_target.hpp>

#include <cstddef>
#include <string>

namespace fanout { inline namespace v0 {

std::string GatherTarget::describe(std::size_t shard) const {
  return "shard " + std::to_string(batch->first_shard + shard) + " on " + to_string(device(shard)) + ", rows " +
         to_string(batch->in_batch(plan[shard].rows));
}

}}  // namespace fanout::v0

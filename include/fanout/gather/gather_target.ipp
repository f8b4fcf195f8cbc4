// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/gather_target.hpp>

#include <cstddef>
#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

std::string GatherTarget::describe(std::size_t shard) const {
  return detail::Text() << "shard " << batch->first_shard + shard << " on " << device(shard) << ", rows "
                        << batch->in_batch(plan[shard].rows);
}

}}  // namespace fanout::v0

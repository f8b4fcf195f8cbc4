// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/dispatch/moved_shards.hpp>

#include <cstddef>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

Deal& MovedShards::deal(const Plan& plan, const DeviceTable& devices, const BlockRunner& runner) {
  release();
  moved_ = make_pooled<Moved>();
  return moved_->deal.emplace(plan, devices, runner);
}

const Plan& MovedShards::move(const Plan& before, std::size_t i, std::size_t device) {
  Plan moved(before.size(),
             [&](std::size_t at) { return at == i ? Shard{.rows = before[at].rows, .device = device} : before[at]; });
  if (moved_ == nullptr) moved_ = make_pooled<Moved>();
  return moved_->as_run = std::move(moved);
}

void MovedShards::release() noexcept {
  delete moved_;
  moved_ = nullptr;
}

}}}  // namespace fanout::v0::detail

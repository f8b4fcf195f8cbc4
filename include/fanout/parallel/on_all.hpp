// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 {

/// The first argument of a call that runs on all devices. Made by on_all().
struct OnAll {};

/// `model(on_all(), broadcast(x))`: where nothing is split, which otherwise is one shard for the main device, every
/// device runs `forward` on all of it. `forward` is handed what stands behind it. Where something is split, that
/// decides.
constexpr OnAll on_all() noexcept { return {}; }

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// The first argument of a call that runs on all devices. Made by on_all().
struct OnAll {};

}  // namespace detail

/// Runs `forward` on every device if no argument is split: `model(on_all(), broadcast(x))`. Without it, such a call is
/// one shard for the main device. Has no effect if an argument is split. `forward` receives the arguments behind it.
constexpr detail::OnAll on_all() noexcept { return {}; }

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include <fanout/call/call_scope.hpp>
#include <fanout/device/device.hpp>
#include <fanout/model/forward.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Stands for the result of a refused model.
struct NotRunnable {};

/// The user's own model, to run for a device: like a Replica, but without an original that it follows. Borrows both.
template <class M, Device D>
class PlacedModel {
 public:
  using model_type = M;

  PlacedModel(const M& model, const D& device) noexcept : model_(model), device_(device) {}
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  const D& device() const noexcept { return device_; }

  /// Runs `forward` for one shard on this thread, with the device entered. Returns a value, also if `forward` returns a
  /// reference.
  template <class Ctx, class... A>
  auto run(const CallScope* caller, Ctx& ctx, A&&... args) const {
    if constexpr (ConstForward<M, Ctx, A...>) {
      const CallScope scope{.caller = caller, .original = &model_};
      const EnteredScope entered(scope);
      return call_forward(model_, ctx, std::forward<A>(args)...);
    } else {
      static_assert(ConstForward<M, Ctx, A...>,
                    "fanout: apply() needs a model with a const forward or call operator for the scattered arguments "
                    "(a Tensor arrives as View<const T, R>, a std::vector as std::span<const T>, anything else by "
                    "const reference); replicate() copies models whose forward is not const");
      return NotRunnable{};
    }
  }

 private:
  const M& model_;
  const D& device_;
};

}}}  // namespace fanout::v0::detail

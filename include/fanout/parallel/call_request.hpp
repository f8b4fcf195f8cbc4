// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/call/call_state.hpp>
#include <fanout/fwd.hpp>
#include <fanout/memory/output_buffer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What the caller asks of a call besides its arguments. Borrows the targets and the settings.
struct CallRequest {
  bool on_all = false;
  const CallSettings* settings = nullptr;  ///< null: those of the model
  const OutputTarget* targets = nullptr;   ///< memory for the outputs, as CallStart has it
  std::size_t target_count = 0;
  CallClock* clock = nullptr;  ///< null if the call is not measured
  bool is_limited = false;     ///< to the rows that fit into the devices' memories for that shape of the arguments
  std::uint64_t shape = 0;
  /// Of a call that has entered the model and has its number: an asynchronous one, or one that tries fewer rows if
  /// memory runs out.
  const CallStart* begun = nullptr;

  const CallSettings& settings_or(const CallSettings& of_model) const noexcept {
    return settings != nullptr ? *settings : of_model;
  }
};
inline constexpr CallRequest plain_request;
inline constexpr CallRequest on_all_request{.on_all = true};

}}}  // namespace fanout::v0::detail

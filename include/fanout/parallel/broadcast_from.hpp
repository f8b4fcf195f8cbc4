// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/call/call_settings.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/model/broadcast_values.hpp>
#include <fanout/parallel/parallel_model.hpp>

// Apart from parallel_model.hpp, since few programs have other ranks to send a model to.

namespace fanout { inline namespace v0 {

template <class M, class Source>
void ParallelModel<M, Source>::broadcast_from(std::size_t root) {
  update([this, root](auto& original) {
    const detail::CallSettings& settings = state_->settings;
    if (settings.ranks != nullptr) {
      detail::broadcast_values(original, *settings.ranks, state_->ranked_calls.model, root, settings.deadline);
    } else if (state_->options.ranks != nullptr && root >= state_->options.ranks.value()->size()) {  // one rank, alone
      throw detail::no_such_root(*state_->options.ranks.value(), root);
    }
  });
}

}}  // namespace fanout::v0

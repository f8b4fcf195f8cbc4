// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/registry.hpp>

#include <vector>

#include <fanout/worker/cores.hpp>

namespace fanout { inline namespace v0 { namespace backend {

Worker& Registry::worker(const DeviceId& id, const std::vector<int>& cores, bool bound) {
  if (Worker* known = find(id, cores, bound)) return *known;
  const detail::ForkSafeLock adding(mutex_);
  if (Worker* known = find(id, cores, bound)) return *known;
  auto* node = new Node{{id, cores, bound}, head_.load(detail::MemoryOrder::relaxed)};
  head_.store(node, detail::MemoryOrder::release);
  return node->worker;
}

Worker* Registry::find(const DeviceId& id, const std::vector<int>& cores, bool bound) const {
  for (Node* node = head_.load(detail::MemoryOrder::acquire); node != nullptr; node = node->next) {
    if (node->worker.id() == id && node->worker.bound() == bound && node->worker.cores() == cores) {
      return &node->worker;
    }
  }
  return nullptr;
}

Registry& registry() {
  Registry* registry = detail::only_registry.load(detail::MemoryOrder::acquire);
  if (registry == nullptr) {
    auto* made = new Registry(detail::process_cores());
    if (detail::only_registry.compare_exchange_strong(registry, made, detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *registry;
}

}}}  // namespace fanout::v0::backend

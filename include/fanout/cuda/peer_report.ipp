// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/peer_report.hpp>

#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

std::vector<PeerLink> peer_links() {
  std::vector<PeerLink> links;
  const int count = device_count();
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) links.push_back(peer_link(from, to));
  }
  return links;
}

std::string peer_report() {
  const std::vector<PeerLink> links = peer_links();
  const int count = device_count();
  if (count == 0) return "No CUDA device is visible: " + unavailable_reason() + ".\n";
  const auto padded = [](const std::string& text) {
    return text + std::string(text.size() < 10 ? 10 - text.size() : 1, ' ');
  };
  std::string matrix = padded("from \\ to");
  for (int to = 0; to < count; ++to) matrix += padded(detail::name_of_gpu(to));
  std::string reasons;
  for (const PeerLink& link : links) {
    if (link.to == 0) matrix += '\n' + padded(detail::name_of_gpu(link.from));
    matrix += padded(link.from == link.to ? "-" : link.direct ? "direct" : "staged");
    if (link.direct || link.from > link.to) continue;
    reasons += detail::name_of_gpu(link.from) + " and " + detail::name_of_gpu(link.to) +
               " copy through the host's memory: " + link.why + '\n';
  }
  return matrix + '\n' + reasons;
}

}}}  // namespace fanout::v0::cuda

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/cuda/runtime/peer_access.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// The links between all visible cards, row by row: from cuda:0 to each, from cuda:1 to each, and so on; also from each
/// to itself. Checks those that were not asked for yet, and so makes the contexts of all cards if there are two or
/// more. Empty without a card.
inline std::vector<PeerLink> peer_links() {
  std::vector<PeerLink> links;
  const int count = device_count();
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) links.push_back(peer_link(from, to));
  }
  return links;
}

/// peer_links() for a person to read: a matrix of how bytes get from a row's card to a column's, `direct` or `staged`,
/// and below it why they do not go directly.
inline std::string peer_report() {
  const std::vector<PeerLink> links = peer_links();
  const int count = device_count();
  if (count == 0) return "No CUDA device is visible: " + unavailable_reason() + ".\n";
  const auto padded = [](const std::string& text) {
    return text + std::string(text.size() < 10 ? 10 - text.size() : 1, ' ');
  };
  std::string matrix = padded("from \\ to");
  for (int to = 0; to < count; ++to) matrix += padded(detail::name_of_card(to));
  std::string reasons;
  for (const PeerLink& link : links) {
    if (link.to == 0) matrix += '\n' + padded(detail::name_of_card(link.from));
    matrix += padded(link.from == link.to ? "-" : link.direct ? "direct" : "staged");
    if (link.direct || link.from > link.to) continue;
    reasons += detail::name_of_card(link.from) + " and " + detail::name_of_card(link.to) +
               " copy through the host's memory: " + link.why + '\n';
  }
  return matrix + '\n' + reasons;
}

}}}  // namespace fanout::v0::cuda

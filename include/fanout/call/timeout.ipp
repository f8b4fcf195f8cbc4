// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/timeout.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

inline std::string timeout_text(const SmallVector<LateShard>& late, std::size_t shards, Duration deadline) {
  Text text;
  text << late.size() << " of " << shards << (shards == 1 ? " shard" : " shards")
       << " took longer than the deadline of " << Timeout::to_text(deadline);
  for (const LateShard& shard : late) {
    text << "\n  shard " << shard.shard << " on device " << shard.device << ", rows " << shard.rows;
  }
  return text;
}

}  // namespace detail

Timeout::Timeout(detail::SmallVector<LateShard> late, std::size_t shards, Duration deadline)
    : Error(detail::timeout_text(late, shards, deadline)), kept_(new Kept{.late = std::move(late), .missing = {}}) {}

Timeout::Timeout(const std::string& text, detail::SmallVector<std::size_t> missing)
    : Error(text), kept_(new Kept{.late = {}, .missing = std::move(missing)}) {}

Timeout::Timeout(const Timeout& other) noexcept : Error(other), kept_(other.kept_) {
  kept_->holders.fetch_add(1, detail::MemoryOrder::relaxed);
}

Timeout& Timeout::operator=(const Timeout& other) noexcept {
  Timeout copy(other);
  Error::operator=(other);
  std::swap(kept_, copy.kept_);
  return *this;
}

void Timeout::release() const noexcept {
  delete kept_->results;
  delete kept_;
}

std::string Timeout::to_text(Duration time) {
  const std::int64_t microseconds = time.nanoseconds() / 1000;
  if (microseconds != 0 && microseconds % 1'000'000 == 0) return detail::Text() << microseconds / 1'000'000 << " s";
  if (microseconds != 0 && microseconds % 1000 == 0) return detail::Text() << microseconds / 1000 << " ms";
  return detail::Text() << microseconds << " us";
}

}}  // namespace fanout::v0

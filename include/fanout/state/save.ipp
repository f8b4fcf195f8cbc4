// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/save.hpp>

#include <algorithm>

#include <fanout/memory/transfer.hpp>
#include <fanout/state/write_header.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void StateWriter::write(const std::string& path) {
  const std::vector<std::size_t> order = place_entries(entries_);
  const std::string header = header_bytes(entries_, order);
  ReplacedFile file(path);
  file.write(header.data(), header.size());
  for (const std::size_t i : order) {
    visit_runs(leaves_[i], [&](const std::byte* data, std::size_t bytes) {
      if (leaves_[i].space == host_memory) return file.write(data, bytes);
      write_from(leaves_[i].space, data, bytes, file);
    });
  }
  file.commit();
}

void StateWriter::write_from(const MemorySpace& space, const std::byte* data, std::size_t bytes, ReplacedFile& file) {
  constexpr std::size_t part_size = std::size_t{16} << 20;
  const std::size_t most = std::min(bytes, part_size);
  const Storage& here = part_.has_value() && part_->bytes() >= most ? *part_ : part_.emplace(backend::Memory{}, most);
  while (bytes != 0) {
    const std::size_t part = std::min(bytes, here.bytes());
    backend::transfer(backend::Memory{}, here.data(), space, data, part);
    file.write(here.data(), part);
    data += part;
    bytes -= part;
  }
}

}}}  // namespace fanout::v0::detail

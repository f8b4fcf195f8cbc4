// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/mapped_file.hpp>

#include <cerrno>
#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

MappedFile::MappedFile(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // waits for no pipe's writer
  if (!file_.is_open()) refuse(path, "open", errno);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) refuse(path, "fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(explain({.what = what, .where = path, .expected = "a regular file"}));
  }
  if (status.st_size == 0) return;  // which cannot be mapped
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (data == MAP_FAILED) refuse(path, "mmap", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

std::byte* MappedFile::map(std::size_t begin, std::size_t bytes) const {
  const std::size_t before = begin % page();
  // Reserves no memory: there may be less than the part would take.
  void* const data = ::mmap(nullptr, before + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file_.get(),
                            static_cast<off_t>(begin - before));
  if (data == MAP_FAILED) refuse(path_, "mmap", errno);
  return static_cast<std::byte*>(data) + before;
}

void MappedFile::unmap(std::byte* data, std::size_t bytes) noexcept {
  const std::size_t before = reinterpret_cast<std::uintptr_t>(data) % page();
  ::munmap(data - before, before + bytes);
}

}}}  // namespace fanout::v0::detail

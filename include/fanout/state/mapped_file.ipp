// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/mapped_file.hpp>

#include <cerrno>

namespace fanout { inline namespace v0 { namespace detail {

MappedFile::MappedFile(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // waits for no pipe's writer
  if (!file.is_open()) refuse(path, "open", errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) refuse(path, "fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(explain({.what = what, .where = path, .expected = "a regular file"}));
  }
  if (status.st_size == 0) return;  // which cannot be mapped
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) refuse(path, "mmap", errno);
  bytes_ = {static_cast<const std::byte*>(data), size};
}

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fanout/state/file_access.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The bytes of a file, mapped to be read. The file must not become shorter meanwhile: a read behind its end ends the
/// process. Whoever replaces the file by another one, as save() does, changes nothing here. Throws Error if the file
/// cannot be opened or mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
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
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  static constexpr const char* what = "a state cannot be loaded";

  [[noreturn]] static void refuse(const std::string& path, const char* call, int error) {
    refuse_file(what, path, call, error);
  }

  std::span<const std::byte> bytes_;
};

}}}  // namespace fanout::v0::detail

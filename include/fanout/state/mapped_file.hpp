// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/file_access.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The bytes of a file, mapped to be read. The file must not become shorter meanwhile: a read behind its end ends the
/// process. Whoever replaces the file by another one, as save() does, changes nothing here. Throws Error if the file
/// cannot be opened or mapped.
class MappedFile {
 public:
  FANOUT_INLINE explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Maps a part of the file once more, which is not empty. It outlives this object, until unmap(). It may be written
  /// to, which does not change the file. Only what is read or written takes memory. Throws Error.
  FANOUT_INLINE std::byte* map(std::size_t begin, std::size_t bytes) const;
  FANOUT_INLINE static void unmap(std::byte* data, std::size_t bytes) noexcept;

 private:
  static constexpr const char* what = "a state cannot be loaded";

  static std::size_t page() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  [[noreturn]] static void refuse(const std::string& path, const char* call, int error) {
    refuse_file(what, path, call, error);
  }

  std::string path_;
  FileDescriptor file_;
  std::span<const std::byte> bytes_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/mapped_file.ipp>
#endif

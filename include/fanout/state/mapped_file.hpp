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

 private:
  static constexpr const char* what = "a state cannot be loaded";

  [[noreturn]] static void refuse(const std::string& path, const char* call, int error) {
    refuse_file(what, path, call, error);
  }

  std::span<const std::byte> bytes_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/mapped_file.ipp>
#endif

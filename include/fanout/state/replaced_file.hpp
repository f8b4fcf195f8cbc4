// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/state/file_access.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Numbers the temporary files of this process.
[[gnu::visibility("default")]] inline Atomic<unsigned> temporary_files{0};

/// A file that is written anew, all or nothing: the old file stays until commit(), which puts the new one in its place
/// at once and keeps its permissions. Whatever happens before, also a power failure, leaves the old file as it was. A
/// symbolic link stays, and what it refers to is replaced.
///
/// The new file has no name until it is complete, so a process that is killed leaves nothing behind, except in the
/// moment in which the file gets its name. If the file system cannot do that, or in that moment, its name is
/// `.fanout.PID.N` in the same folder.
///
/// Throws Error, which says which system call failed and why, and removes what was written.
class ReplacedFile {
 public:
  /// `unnamed` is false to act as if the file system needed names.
  FANOUT_INLINE explicit ReplacedFile(const std::string& path, bool unnamed = true);
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile() { discard(); }

  FANOUT_INLINE void write(const void* data, std::size_t bytes);

  /// Waits until the file is on its disk, and puts it in the place of the old one.
  FANOUT_INLINE void commit();

 private:
  static constexpr const char* what = "a state cannot be saved";
  static constexpr int most_links = 40;  // as Linux
  static constexpr std::size_t buffer_size = std::size_t{1} << 16;

  [[noreturn]] void refuse(const char* call, int error) const { refuse_file(what, path_, call, error); }

  /// The path, or what it refers to if it is a symbolic link, whether that is there or not.
  FANOUT_INLINE std::string followed() const;

  /// Leaves the file closed if the system cannot do it.
  FANOUT_INLINE void open_unnamed();

  static std::string link_to(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

  FANOUT_INLINE void open_named();

  /// Calls `make(name)` with names that no file has, until it returns true or fails otherwise.
  template <class F>
  void make_named(const F& make) {
    for (int i = 0; i < 1000; ++i) {
      const std::string name = ".fanout." + std::to_string(::getpid()) + "." +
                               std::to_string(temporary_files.fetch_add(1, MemoryOrder::relaxed));
      if (make(name)) {
        temporary_ = name;
        return;
      }
      if (errno != EEXIST) return;
    }
  }

  FANOUT_INLINE void keep_permissions(const struct stat& old) const;

  void flush() {
    write_now(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

  FANOUT_INLINE void write_now(const char* data, std::size_t bytes) const;

  FANOUT_INLINE static bool synchronize(const FileDescriptor& file) noexcept;

  void discard() noexcept {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  }

  std::string path_;
  std::string name_;  // of the file in its folder
  std::string temporary_;
  FileDescriptor folder_, file_;
  std::vector<char> buffer_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/replaced_file.ipp>
#endif

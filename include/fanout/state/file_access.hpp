// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <unistd.h>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Throws Error: what could not be done with a file, and the system call that failed, with the text of its errno.
[[noreturn]] inline void refuse_file(const char* what, const std::string& path, const char* call, int error) {
  throw Error(explain({.what = what, .where = path, .found = std::string(call) + ": " + std::strerror(error)}));
}

/// Owns a file descriptor. -1 stands for none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }

  /// Returns false, and sets errno, if the system reports an error of an earlier write. Linux closes it in any case.
  bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0 || errno == EINTR; }

 private:
  int number_;
};

}}}  // namespace fanout::v0::detail

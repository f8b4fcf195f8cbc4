// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/replaced_file.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

ReplacedFile::ReplacedFile(const std::string& path, bool unnamed) : path_(path) {
  if (path.empty()) throw Error(explain({.what = what, .expected = "the path of a file", .found = "an empty path"}));
  const std::string target = followed();
  const std::size_t slash = target.rfind('/');
  name_ = slash == std::string::npos ? target : target.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (name_.empty()) refuse("open", EISDIR);
  folder_ = FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) refuse("open", errno);
  struct stat old {};
  const bool has_old = ::fstatat(folder_.get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!has_old && errno != ENOENT) refuse("fstatat", errno);
  if (has_old && !S_ISREG(old.st_mode)) {
    throw Error(explain({.what = what, .where = path_, .expected = "a regular file, or none yet"}));
  }
  buffer_.reserve(buffer_size);  // nothing is to be removed yet if this throws
  if (unnamed) open_unnamed();
  if (!file_.is_open()) open_named();
  try {
    if (has_old) keep_permissions(old);
  } catch (...) {
    discard();
    throw;
  }
}

void ReplacedFile::write(const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(data);
  if (bytes > buffer_size - buffer_.size()) {
    flush();
    if (bytes >= buffer_size) return write_now(begin, bytes);
  }
  buffer_.insert(buffer_.end(), begin, begin + bytes);
}

void ReplacedFile::commit() {
  flush();
  if (!synchronize(file_)) refuse("fsync", errno);
  if (temporary_.empty()) {
    const std::string unnamed = link_to(file_);
    make_named([&](const std::string& name) {
      return ::linkat(AT_FDCWD, unnamed.c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
    if (temporary_.empty()) refuse("linkat", errno);  // from here to renameat() a kill leaves the file
  } else if (!file_.close()) {                        // NFS writes then
    refuse("close", errno);
  }
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) refuse("renameat", errno);
  temporary_.clear();
  // Only now does the new name survive a power failure. Some file systems have no fsync of folders.
  if (!synchronize(folder_) && errno != EINVAL) {
    refuse_file("a state was saved, but a power failure may bring the old one back", path_, "fsync", errno);
  }
}

std::string ReplacedFile::followed() const {
  std::string target = path_;
  for (int links = 0; links <= most_links; ++links) {
    struct stat status {};
    if (::lstat(target.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return target;
    char to[PATH_MAX];
    const ssize_t size = ::readlink(target.c_str(), to, sizeof to);
    if (size < 0) refuse("readlink", errno);
    const bool is_absolute = size > 0 && to[0] == '/';
    target.resize(is_absolute ? 0 : target.rfind('/') + 1);  // the folder, or nothing if there is no slash
    target.append(to, static_cast<std::size_t>(size));
  }
  refuse("readlink", ELOOP);
}

void ReplacedFile::open_unnamed() {
#ifdef O_TMPFILE
  file_ = FileDescriptor(::openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (file_.is_open() && ::access(link_to(file_).c_str(), F_OK) != 0) file_ = FileDescriptor();  // without /proc
#endif
}

void ReplacedFile::open_named() {
  make_named([this](const std::string& name) {
    file_ = FileDescriptor(
        ::openat(folder_.get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666));
    return file_.is_open();
  });
  if (temporary_.empty()) refuse("openat", errno);
}

void ReplacedFile::keep_permissions(const struct stat& old) const {
  struct stat made {};
  if (::fstat(file_.get(), &made) != 0) refuse("fstat", errno);
  if (made.st_uid != old.st_uid || made.st_gid != old.st_gid) {
    // Only root may give a file away, and in a container only to users that it knows. If that fails, the file becomes
    // the saver's own, as any new file, but stays in its group if the saver is in that.
    if (::fchown(file_.get(), old.st_uid, old.st_gid) != 0) {
      [[maybe_unused]] const int result = ::fchown(file_.get(), made.st_uid, old.st_gid);
    }
  }
  if (::fchmod(file_.get(), old.st_mode & 07777U) != 0) refuse("fchmod", errno);
}

void ReplacedFile::write_now(const char* data, std::size_t bytes) const {
  constexpr std::size_t most = std::size_t{1} << 30;  // Linux writes no 2 GiB at once
  while (bytes != 0) {
    const ssize_t written = ::write(file_.get(), data, std::min(bytes, most));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse("write", written < 0 ? errno : EIO);
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

bool ReplacedFile::synchronize(const FileDescriptor& file) noexcept {
  int result = 0;
  do {
    result = ::fsync(file.get());
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}}}  // namespace fanout::v0::detail

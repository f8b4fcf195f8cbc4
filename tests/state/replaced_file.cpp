// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/replaced_file.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/python.hpp"
#include "support/fork.hpp"
#include "support/message_of.hpp"

using fanout::detail::ReplacedFile;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::TestFolder;
using fanout_test::text_of;

namespace {

void replace(const std::string& path, const std::string& text) {
  ReplacedFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

std::size_t files_in(const TestFolder& folder) {
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder / "")) ++files;
  return files;
}

/// No file that is written now may have more bytes than this.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limited{most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limited) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

/// Notes the system calls below, in their order, and lets one of them fail.
struct SystemCalls {
  bool noted = false;
  std::string order = {};
  std::string failing = {};  // a name of `order`
  int error = EIO;
  int times = 1;                // it fails
  std::size_t most = 1U << 30;  // bytes that one write() takes

  /// True if this call is to fail.
  bool fails(const std::string& name) {
    if (!noted) return false;
    order += name + ' ';
    if (name != failing || times == 0) return false;
    --times;
    errno = error;
    return true;
  }
} system_calls;

/// The order of the system calls of a file that is replaced.
std::string calls_of(const std::string& path, bool unnamed, const SystemCalls& settings, std::string& message) {
  ReplacedFile file(path, unnamed);
  file.write("new", 3);
  system_calls = settings;
  system_calls.noted = true;
  message.clear();
  try {
    file.commit();
  } catch (const fanout::Error& error) {
    message = error.what();
  }
  system_calls.noted = false;
  return system_calls.order;
}

}  // namespace

// These stand in the place of the C library's.
extern "C" {
int fsync(int file) {
  struct stat status {};
  const bool is_folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
  if (system_calls.fails(is_folder ? "fsync(folder)" : "fsync(file)")) return -1;
  return static_cast<int>(::syscall(SYS_fsync, file));
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (system_calls.fails("renameat")) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (system_calls.fails("linkat")) return -1;
  return static_cast<int>(::syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}
ssize_t write(int file, const void* data, std::size_t bytes) {
  if (system_calls.fails("write")) return -1;
  return ::syscall(SYS_write, file, data, system_calls.noted && bytes > system_calls.most ? system_calls.most : bytes);
}
}

TEST_CASE("a file is on its disk before it gets its name, and the name is before the commit ends") {
  const TestFolder folder;
  std::string message;
  CHECK(calls_of(folder / "named", false, {}, message) == "write fsync(file) renameat fsync(folder) ");
  CHECK(message.empty());
  const std::string order = calls_of(folder / "unnamed", true, {}, message);
  CHECK((order == "write fsync(file) linkat renameat fsync(folder) " ||  // or without O_TMPFILE
         order == "write fsync(file) renameat fsync(folder) "));
  CHECK(message.empty());
}

TEST_CASE("a system call that fails is an error, and leaves the old file alone and nothing else") {
  for (const bool unnamed : {false, true}) {
    for (const std::string name : {"write", "fsync(file)", "linkat", "renameat"}) {
      CAPTURE(unnamed);
      CAPTURE(name);
      const TestFolder folder;
      const std::string path = folder / "file";
      replace(path, "old");
      std::string message;
      const std::string order = calls_of(path, unnamed, {.failing = name}, message);
      if (order.find(name) == std::string::npos) continue;  // linkat() of a file that has a name
      CHECK(order.ends_with(name + " "));                   // nothing is done after it
      CHECK(says(message, "a state cannot be saved at " + path, name.substr(0, name.find('(')), "Input/output error"));
      CHECK(text_of(path) == "old");
      CHECK(files_in(folder) == 1);
    }
  }
}

TEST_CASE("a folder that cannot be synchronized is an error of its own, but for file systems that never do it") {
  const TestFolder folder;
  const std::string path = folder / "file";
  std::string message;
  calls_of(path, true, {.failing = "fsync(folder)"}, message);
  CHECK(says(message, "a power failure may bring the old one back", path, "fsync: Input/output error"));
  CHECK(text_of(path) == "new");
  CHECK(files_in(folder) == 1);
  calls_of(path, true, {.failing = "fsync(folder)", .error = EINVAL}, message);
  CHECK(message.empty());
  calls_of(path, true, {.failing = "fsync(file)", .error = EINVAL}, message);
  CHECK(says(message, "a state cannot be saved", "fsync: Invalid argument"));
}

TEST_CASE("calls that a signal interrupts are made again, and a short write goes on") {
  const TestFolder folder;
  const std::string path = folder / "file";
  std::string message;
  for (const std::string name : {"write", "fsync(file)", "fsync(folder)"}) {
    CAPTURE(name);
    const std::string order = calls_of(path, false, {.failing = name, .error = EINTR, .times = 2}, message);
    CHECK(message.empty());
    CHECK(order.find(name + " " + name + " " + name + " ") != std::string::npos);
    CHECK(text_of(path) == "new");
  }
  CHECK(calls_of(path, false, {.most = 2}, message) == "write write fsync(file) renameat fsync(folder) ");
  CHECK(message.empty());
  CHECK(text_of(path) == "new");
}

TEST_CASE("a file is replaced only when all of the new one is there") {
  const TestFolder folder;
  const std::string path = folder / "file";
  replace(path, "old");
  CHECK(text_of(path) == "old");
  {
    ReplacedFile file(path);
    file.write("new", 3);
    CHECK(text_of(path) == "old");
    file.write(" text", 5);
    file.commit();
    CHECK(text_of(path) == "new text");
  }
  CHECK(text_of(path) == "new text");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a file that is not committed leaves nothing behind") {
  const TestFolder folder;
  const std::string path = folder / "file";
  { ReplacedFile(path).write("new", 3); }
  CHECK(files_in(folder) == 0);
  replace(path, "old");
  {
    ReplacedFile file(path);
    const std::string large(1'000'000, 'x');
    file.write(large.data(), large.size());
  }
  CHECK(text_of(path) == "old");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a file system without unnamed files has a temporary one meanwhile") {
  const TestFolder folder;
  const std::string path = folder / "file";
  replace(path, "old");
  {
    ReplacedFile file(path, false), other(path, false);
    file.write("new", 3);
    CHECK(files_in(folder) == 3);
    CHECK(text_of(path) == "old");
    file.commit();
    CHECK(text_of(path) == "new");
    CHECK(files_in(folder) == 2);
  }
  CHECK(text_of(path) == "new");
  CHECK(files_in(folder) == 1);
  {
    const FileSizeLimit limit(1);
    CHECK_THROWS_AS(
        [&] {
          ReplacedFile file(path, false);
          file.write("text", 4);
          file.commit();
        }(),
        fanout::Error);
  }
  CHECK(text_of(path) == "new");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("small and large parts of a file are written in order") {
  const TestFolder folder;
  std::string all;
  ReplacedFile file(folder / "file");
  for (const std::size_t size : std::vector<std::size_t>{1, 65535, 1, 0, 65536, 70000, 3, 65533, 65536, 200000, 5}) {
    std::string part;
    for (std::size_t i = 0; i < size; ++i) part += static_cast<char>('a' + (all.size() + i) % 23);
    file.write(part.data(), part.size());
    all += part;
  }
  file.commit();
  CHECK(text_of(folder / "file") == all);
}

TEST_CASE("a new file has the permissions of the old one, or those of any new file") {
  const TestFolder folder;
  const std::string path = folder / "file";
  const mode_t before = ::umask(027);
  replace(path, "first");
  ::umask(before);
  CHECK(mode_of(path) == 0640);
  for (const mode_t mode : std::vector<mode_t>{0600, 0444, 0666}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    replace(path, "next");
    CHECK(mode_of(path) == mode);
  }
}

TEST_CASE("a new file has the owner of the old one, if root writes it") {
  if (::geteuid() != 0) return fanout_test::skip("this needs root");
  const TestFolder folder;
  const std::string path = folder / "file";
  replace(path, "first");
  REQUIRE(::chown(path.c_str(), 4711, 815) == 0);
  REQUIRE(::chmod(path.c_str(), 06755) == 0);  // which a change of the owner would take away
  replace(path, "next");
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK(status.st_uid == 4711);
  CHECK(status.st_gid == 815);
  CHECK(mode_of(path) == 06755);
}

TEST_CASE("a new file stays in the group of the old one, also if another user of that group writes it" *
          doctest::skip(!fanout_test::can_fork)) {
  if (::geteuid() != 0) return fanout_test::skip("this needs root");
  const TestFolder folder;
  const std::string path = folder / "file";
  replace(path, "old");
  REQUIRE(::chown(path.c_str(), 4711, 815) == 0);
  REQUIRE(::chmod(path.c_str(), 0660) == 0);
  REQUIRE(::chmod((folder / "").c_str(), 0777) == 0);
  const int none = 77;
  const int status = fanout_test::in_child([&] {
    const gid_t groups[] = {815};
    if (::setgroups(1, groups) != 0 || ::setgid(4713) != 0 || ::setuid(4712) != 0) return none;
    try {
      replace(path, "new");
    } catch (const fanout::Error&) {
      return 1;
    }
    return 0;
  });
  if (status == none) return fanout_test::skip("this needs other users");
  CHECK(status == 0);
  CHECK(text_of(path) == "new");
  struct stat made {};
  REQUIRE(::stat(path.c_str(), &made) == 0);
  CHECK(made.st_uid == 4712);
  CHECK(made.st_gid == 815);
  CHECK(mode_of(path) == 0660);
}

TEST_CASE("a file is replaced where its owner has no number, as in a container" *
          doctest::skip(!fanout_test::can_fork)) {
  const TestFolder folder;
  const std::string path = folder / "file";
  const bool is_root = ::geteuid() == 0;
  const int none = 77;
  const auto replaced = [&](const std::string& users) {
    replace(path, "old");
    if (is_root) REQUIRE(::chown(path.c_str(), 4711, 815) == 0);
    return fanout_test::in_child([&] {
      if (::unshare(CLONE_NEWUSER) != 0) return none;
      if (!users.empty()) {
        const int map = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        if (::write(map, users.data(), users.size()) != static_cast<ssize_t>(users.size())) return none;
      }
      try {
        replace(path, "new");
      } catch (const fanout::Error&) {
        return 1;
      }
      return 0;
    });
  };
  for (const std::string& users : {std::string(), "0 " + std::to_string(::geteuid()) + " 1"}) {
    CAPTURE(users);
    const int status = replaced(users);
    if (status == none) return fanout_test::skip("this needs user namespaces");
    CHECK(status == 0);
    CHECK(text_of(path) == "new");
  }
}

TEST_CASE("a symbolic link stays, and what it refers to is replaced") {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "runs");
  replace(folder / "runs/first", "old");
  std::filesystem::create_symlink("runs/first", folder / "latest");
  replace(folder / "latest", "new");
  CHECK(std::filesystem::is_symlink(folder / "latest"));
  CHECK(text_of(folder / "runs/first") == "new");
  std::filesystem::create_symlink("nowhere", folder / "broken");
  replace(folder / "broken", "first");  // to what is not there yet
  CHECK(std::filesystem::is_symlink(folder / "broken"));
  CHECK(text_of(folder / "nowhere") == "first");
  std::filesystem::create_symlink(folder / "latest", folder / "runs/link");
  replace(folder / "runs/link", "over two links");
  CHECK(text_of(folder / "runs/first") == "over two links");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK(says(message_of<fanout::Error>([&] { replace(folder / "circle", "new"); }), "cannot be saved", "circle",
             "readlink: Too many levels"));
}

TEST_CASE("a path without a folder is in the working directory") {
  const TestFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  replace("file", "new");
  ReplacedFile file("other");
  file.write("x", 1);
  std::filesystem::current_path(before);  // the folder is the one of the beginning
  file.commit();
  CHECK(text_of(folder / "file") == "new");
  CHECK(text_of(folder / "other") == "x");
}

TEST_CASE("a file that cannot be written is an error with its path and the system's reason") {
  const TestFolder folder;
  const auto refused = [&](const std::string& path) {
    return message_of<fanout::Error>([&] { replace(path, "new"); });
  };
  CHECK(says(refused(folder / "none/file"), "a state cannot be saved at ", "none/file", "open: No such file"));
  CHECK(says(refused(folder / ""), "open: Is a directory"));
  CHECK(says(refused(""), "a state cannot be saved", "expected the path of a file", "found an empty path"));
  std::filesystem::create_directory(folder / "folder");
  CHECK(says(refused(folder / "folder"), "folder", "expected a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(refused(folder / "pipe"), "expected a regular file"));
  CHECK(says(refused("/dev/full"), "/dev/full", "expected a regular file"));
  CHECK(says(refused(folder / std::string(300, 'x')), "fstatat: File name too long"));
  CHECK(files_in(folder) == 2);
}

TEST_CASE("a disk that is full leaves the old file and nothing else") {
  const TestFolder folder;
  const std::string path = folder / "file";
  replace(path, "old");
  const std::string large(100'000, 'x');
  for (const std::size_t most : std::vector<std::size_t>{0, 1, 65536, 99'999}) {
    std::string message;
    {
      const FileSizeLimit limit(most);
      message = message_of<fanout::Error>([&] { replace(path, large); });
    }
    CHECK(says(message, "a state cannot be saved at " + path, "write: File too large"));
    CHECK(text_of(path) == "old");
    CHECK(files_in(folder) == 1);
  }
  {
    const FileSizeLimit limit(100'000);
    replace(path, large);
  }
  CHECK(text_of(path) == large);
}

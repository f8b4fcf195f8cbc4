// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/file_access.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "support/message_of.hpp"

using fanout::detail::FileDescriptor;

TEST_CASE("a file descriptor is closed once, by its last owner") {
  int number = -1;
  {
    FileDescriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(first.is_open());
    number = first.get();
    FileDescriptor second(std::move(first));
    CHECK_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move)
    FileDescriptor third;
    third = std::move(second);
    CHECK(third.get() == number);
    CHECK(::fcntl(number, F_GETFD) != -1);
  }
  CHECK(::fcntl(number, F_GETFD) == -1);
  FileDescriptor again(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  number = again.get();
  CHECK(again.close());
  CHECK_FALSE(again.is_open());
  CHECK(::fcntl(number, F_GETFD) == -1);
  CHECK_FALSE(again.close());  // there is none
}

TEST_CASE("an error of a file has its path, the call that failed and the system's text") {
  CHECK(fanout_test::says(
      fanout_test::message_of<fanout::Error>([] { fanout::detail::refuse_file("not saved", "a/b", "fsync", ENOSPC); }),
      "not saved at a/b: found fsync: No space left on device"));
}

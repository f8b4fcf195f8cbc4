// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/mapped_file.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include "observe/python.hpp"
#include "support/message_of.hpp"

using fanout::detail::MappedFile;
using fanout_test::message_of;
using fanout_test::says;

TEST_CASE("a mapped file shows its bytes, also after another file has taken its place") {
  const fanout_test::TestFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path) << "bytes";
  const MappedFile file(path);
  std::ofstream(folder / "other") << "other ones";
  std::filesystem::rename(folder / "other", path);
  REQUIRE(file.bytes().size() == 5);
  CHECK(std::string(reinterpret_cast<const char*>(file.bytes().data()), 5) == "bytes");
}

TEST_CASE("an empty file has no bytes") {
  const fanout_test::TestFolder folder;
  std::ofstream(folder / "file").close();
  CHECK(MappedFile(folder / "file").bytes().empty());
}

TEST_CASE("what cannot be read is an error with its path and the system's reason") {
  const fanout_test::TestFolder folder;
  const auto refused = [](const std::string& path) {
    return message_of<fanout::Error>([&] { MappedFile file(path); });
  };
  CHECK(says(refused(folder / "none"), "a state cannot be loaded at ", "none", "open: No such file"));
  CHECK(says(refused(folder / ""), "expected a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(says(refused(folder / "pipe"), "pipe", "expected a regular file"));
}

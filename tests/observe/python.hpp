// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <stdlib.h>
#include <unistd.h>

#include "support/skip.hpp"

namespace fanout_test {

/// A folder of its own for the files of a test, which goes with it.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fanout_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline bool has_python() { return std::system("python3 -c '' > /dev/null 2>&1") == 0; }

/// Runs a program in Python with these arguments. False, and its words in the log, if it fails.
inline bool python(const std::string& program, const std::string& arguments) {
  return std::system(("python3 " + program + " " + arguments + " >&2").c_str()) == 0;
}

inline std::string beside(const char* file, const char* name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

}  // namespace fanout_test

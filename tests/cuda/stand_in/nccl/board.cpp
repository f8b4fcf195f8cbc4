// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "board.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace stand_in_nccl {
namespace {

std::string folder_of_all() {
  const char* const set = std::getenv("FANOUT_STAND_IN_PROCESSES");
  return set == nullptr ? "" : set;
}

}  // namespace

std::string Board::new_name() {
  static std::atomic<int> next{1};
  if (folder_of_all().empty()) return {};
  return std::to_string(::getpid()) + "-" + std::to_string(next++);
}

std::unique_ptr<Board> Board::open(const std::string& name) {
  if (name.empty() || folder_of_all().empty()) return nullptr;
  std::unique_ptr<Board> board(new Board(folder_of_all() + "/" + name));
  std::filesystem::create_directories(board->folder_);
  return board;
}

void Board::post(const std::string& note, const std::string& text) const {
  static std::atomic<int> next{0};
  const std::string draft = folder_ + "/draft." + std::to_string(::getpid()) + "." + std::to_string(next++);
  std::ofstream(draft, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  std::filesystem::rename(draft, folder_ + "/" + note);
}

void Board::remove(const std::string& note) const { std::remove((folder_ + "/" + note).c_str()); }

bool Board::has(const std::string& note) const { return std::filesystem::exists(folder_ + "/" + note); }

std::string Board::read(const std::string& note) const {
  std::ostringstream text;
  text << std::ifstream(folder_ + "/" + note, std::ios::binary).rdbuf();
  return text.str();
}

bool Board::await(const std::string& note, const std::function<bool()>& given_up) const {
  while (!has(note)) {
    if (given_up()) return has(note);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace stand_in_nccl

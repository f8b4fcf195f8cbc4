// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ranks of several processes leave notes for each other: files in a folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace stand_in_nccl {

/// The notes of the ranks of one unique id. If FANOUT_STAND_IN_PROCESSES names a folder, ranks may be in several
/// processes that see it.
class Board {
 public:
  /// A name for a new id; empty without such a folder.
  static std::string new_name();
  /// Null for an empty name.
  static std::unique_ptr<Board> open(const std::string& name);

  /// Appears as a whole.
  void post(const std::string& note, const std::string& text) const;
  void remove(const std::string& note) const;
  bool has(const std::string& note) const;
  std::string read(const std::string& note) const;
  /// Waits until the note is there, or until `given_up()`. Returns false if it is not.
  bool await(const std::string& note, const std::function<bool()>& given_up) const;

 private:
  explicit Board(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace stand_in_nccl

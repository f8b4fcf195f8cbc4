// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <fstream>
#include <limits>
#include <locale>
#include <stdexcept>
#include <string>

namespace examples {

/// Writes the loss of every step to a file, as csv with a header and all digits of a double. Without a file's name it
/// writes nothing. Throws std::runtime_error if the file cannot be written.
class LossLog {
 public:
  explicit LossLog(const std::string& path) : path_(path) {
    if (path_.empty()) return;
    out_.open(path_);
    out_.imbue(std::locale::classic());
    out_.precision(std::numeric_limits<double>::max_digits10);
    out_ << "step,epoch,rows,loss\n" << std::flush;
    check();
  }

  void add(std::size_t epoch, std::size_t rows, double loss) {
    if (path_.empty()) return;
    out_ << step_++ << ',' << epoch << ',' << rows << ',' << loss << '\n';
  }

  /// To be called at the end: what add() could not write shows here.
  void close() {
    if (path_.empty()) return;
    out_.close();
    check();
  }

 private:
  void check() const {
    if (!out_) throw std::runtime_error("cannot write to the file " + path_);
  }

  std::string path_;
  std::ofstream out_;
  std::size_t step_ = 0;
};

}  // namespace examples

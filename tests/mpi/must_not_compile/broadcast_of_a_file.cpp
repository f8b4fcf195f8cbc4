// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: broadcast_from() needs a model of arrays, numbers, and structs, tuples, vectors and maps of these (this diagnostic shows what it cannot send); a class with private members, base classes or constructors lists its fields (tree/fields.hpp)
// expect: File
#include <string>
#include <utility>

#include <fanout/mpi.hpp>

class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Logged {
  double scale = 1;
  File log{"log.txt"};
  double forward(const double& x) const { return scale * x; }
};

int main() {
  fanout::ParallelModel model{Logged{}, fanout::host_devices(2)};
#ifndef FANOUT_CONTROL
  model.broadcast_from(0);
#endif
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

// [header]
class Squares {  // in squares.hpp, which includes <memory> and <vector>
 public:
  Squares();
  ~Squares();
  std::vector<double> operator()(const std::vector<double>& x) const;

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};
// [/header]

// [source]
struct Squares::Implementation {  // in squares.cpp, which includes <fanout/fanout.hpp>
  struct Square {
    auto forward(fanout::View<const double, 1> x) const {
      std::vector<double> y;
      for (const double value : x) y.push_back(value * value);
      return y;
    }
  };
  fanout::ParallelModel<Square> model{Square()};
};

Squares::Squares() : implementation_(std::make_unique<Implementation>()) {}
Squares::~Squares() = default;
std::vector<double> Squares::operator()(const std::vector<double>& x) const { return implementation_->model(x); }
// [/source]

}  // namespace

TEST_CASE("a class may keep its model in its source file") {
  const Squares squares;
  CHECK(squares({1, 2, 3}) == std::vector<double>{1, 4, 9});
}

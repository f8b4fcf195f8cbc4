// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/base/polymorphic.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

using fanout::detail::Polymorphic;

namespace {

struct Shape {
  virtual ~Shape() { --alive; }
  virtual int corners() const = 0;
  virtual Shape* copy() const = 0;
  static inline int alive = 0;

 protected:
  Shape() { ++alive; }
  Shape(const Shape&) { ++alive; }
};

struct Square final : Shape {
  int corners() const override { return 4; }
  Shape* copy() const override {
    if (breaks) throw std::runtime_error("no copy");
    return new Square(*this);
  }
  bool breaks = false;
};

}  // namespace

TEST_CASE("a polymorphic value is copied with its object, and destroys it") {
  {
    const Polymorphic<Shape> none;
    CHECK_FALSE(static_cast<bool>(none));
    CHECK_FALSE(static_cast<bool>(Polymorphic<Shape>(none)));
    Polymorphic<Shape> square(new Square);
    const Polymorphic<Shape> copy(square);
    CHECK(copy->corners() == 4);
    CHECK(copy.get() != square.get());
    CHECK(Shape::alive == 2);
    Polymorphic<Shape> other(new Square);
    other = copy;
    CHECK(Shape::alive == 3);
    const Polymorphic<Shape>& same = other;
    other = same;
    CHECK(other->corners() == 4);
    other = none;
    CHECK_FALSE(static_cast<bool>(other));
    CHECK(Shape::alive == 2);
    static_cast<Square*>(square.get())->breaks = true;
    other = copy;
    CHECK_THROWS(other = square);
    CHECK(other->corners() == 4);  // as before
  }
  CHECK(Shape::alive == 0);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/tree/child_types.hpp>
#include <fanout/tree/fields.hpp>

#include "support/struct_of.hpp"

using namespace fanout::literals;
using fanout::dict;
using fanout::HasFields;
using fanout::LeafPath;
using fanout::ListsFields;
using fanout::Makeable;
using fanout::detail::FieldsOf;
using fanout::detail::fixed_path;
using fanout_test::StructOf;

namespace fields_test {  // with a name, so that compilers do not look for uses of the fields() in it

struct Plain {
  int number;
  std::string text;
};

class Private {
  int number_ = 1;
  std::string text_ = "default";
  int not_listed_ = 5;

  friend constexpr auto fields(const Private*) {
    return dict("number"_k = &Private::number_, "text"_k = &Private::text_);
  }

 public:
  Private() = default;
  Private(int number, std::string text, int not_listed)
      : number_(number), text_(std::move(text)), not_listed_(not_listed) {}
  int number() const { return number_; }
  const std::string& text() const { return text_; }
  int not_listed() const { return not_listed_; }
};

struct Derived : Plain {
  double more = 0;

  friend constexpr auto fields(const Derived*) {
    return dict("number"_k = &Derived::number, "text"_k = &Derived::text, "more"_k = &Derived::more);
  }
};

/// Not what it lists itself: a part of it.
struct DerivedFromPrivate : Private {
  int more = 0;
};

/// A plain struct that wants other names.
struct Renamed {
  int a, b;
};
constexpr auto fields(const Renamed*) { return dict("second"_k = &Renamed::b, "first"_k = &Renamed::a); }

struct NoDefault {
  explicit NoDefault(int n) : number(n) {}
  int number;
  friend constexpr auto fields(const NoDefault*) { return dict("number"_k = &NoDefault::number); }
};
struct Unassignable {
  Unassignable() : number(0) {}
  const int number;
  friend constexpr auto fields(const Unassignable*) { return dict("number"_k = &Unassignable::number); }
};
struct ListsNumbers {
  ListsNumbers() {}
  friend constexpr auto fields(const ListsNumbers*) { return dict("number"_k = 1); }
};
struct ListsFunctions {
  ListsFunctions() {}
  void f() {}
  friend constexpr auto fields(const ListsFunctions*) { return dict("f"_k = &ListsFunctions::f); }
};
struct ListsMembersOfAnother {
  ListsMembersOfAnother() {}
  friend constexpr auto fields(const ListsMembersOfAnother*) { return dict("number"_k = &Plain::number); }
};
struct ListsNothing {
  ListsNothing() {}
  friend constexpr auto fields(const ListsNothing*) { return dict(); }
};

}  // namespace fields_test

using namespace fields_test;

namespace {

static_assert(!ListsFields<Plain> && HasFields<Plain> && Makeable<Plain>);
static_assert(ListsFields<Private> && HasFields<Private> && Makeable<Private>);
static_assert(ListsFields<Derived> && Makeable<Derived>);
static_assert(ListsFields<Renamed> && Makeable<Renamed>);
static_assert(ListsFields<ListsNothing> && Makeable<ListsNothing> && FieldsOf<ListsNothing>::size == 0);
static_assert(!HasFields<DerivedFromPrivate>, "what a base class lists is not the whole");
static_assert(!HasFields<ListsNumbers>);
static_assert(!HasFields<ListsFunctions>);
static_assert(!HasFields<ListsMembersOfAnother>);
static_assert(!HasFields<int> && !HasFields<std::string> && !HasFields<Plain&>);
static_assert(ListsFields<NoDefault> && !Makeable<NoDefault>);
static_assert(ListsFields<Unassignable> && !Makeable<Unassignable>);

template <class X, std::size_t... I>
std::string paths_of(std::index_sequence<I...>) {
  const LeafPath root("x");
  return ((to_string(fixed_path<X, I>(root)) + " ") + ...);
}
template <class X>
std::string paths_of() {
  return paths_of<X>(std::make_index_sequence<FieldsOf<X>::size>());
}

struct Referring {
  int number;
  const int& reference;
};

}  // namespace

TEST_CASE("the fields of a plain struct are its members") {
  using Fields = FieldsOf<Plain>;
  static_assert(Fields::size == 2);
  static_assert(std::is_same_v<Fields::type<1>, std::string>);
  const Plain plain{3, "text"};
  CHECK(&Fields::get<0>(plain) == &plain.number);
  CHECK(&Fields::get<1>(plain) == &plain.text);
  CHECK(paths_of<Plain>() == "x.number x.text ");
  CHECK(FieldsOf<StructOf<int, 32>>::size == 32);
}

TEST_CASE("the fields of a class are what it lists, in that order") {
  using Fields = FieldsOf<Private>;
  static_assert(Fields::size == 2);
  static_assert(std::is_same_v<Fields::type<1>, std::string>);
  const Private object(3, "text", 9);
  CHECK(&Fields::get<0>(object) != nullptr);
  CHECK(Fields::get<0>(object) == 3);
  CHECK(&Fields::get<1>(object) == &object.text());
  CHECK(paths_of<Private>() == "x.number x.text ");
  CHECK(paths_of<Derived>() == "x.number x.text x.more ");
  CHECK(paths_of<Renamed>() == "x.second x.first ");
  CHECK(FieldsOf<Renamed>::get<0>(Renamed{1, 2}) == 2);
}

TEST_CASE("fields without a name have a place") { CHECK(paths_of<Referring>() == "x[0] x[1] "); }

TEST_CASE("a struct is made from its fields, asked for in order") {
  std::vector<std::size_t> asked;
  const auto value = [&asked](auto index) {
    asked.push_back(index);
    if constexpr (index == 0) {
      return 7;
    } else {
      return std::string("made");
    }
  };
  const Plain plain = FieldsOf<Plain>::make(value);
  CHECK(plain.number == 7);
  CHECK(plain.text == "made");
  const Private object = FieldsOf<Private>::make(value);
  CHECK(object.number() == 7);
  CHECK(object.text() == "made");
  CHECK(object.not_listed() == 5);  // as the default constructor leaves it
  CHECK(asked == std::vector<std::size_t>{0, 1, 0, 1});
}

TEST_CASE("a plain struct can be made of members that cannot be copied or assigned") {
  struct Owner {
    std::unique_ptr<int> pointer;
    const int constant;
  };
  const Owner owner = FieldsOf<Owner>::make([](auto index) {
    if constexpr (index == 0) {
      return std::make_unique<int>(4);
    } else {
      return 5;
    }
  });
  CHECK(*owner.pointer == 4);
  CHECK(owner.constant == 5);
}

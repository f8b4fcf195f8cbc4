// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>

#include "memory/counting_memory.hpp"
#include "support/message_of.hpp"

using fanout::Extents;
using fanout::RowRange;
using fanout::ShapeMismatch;
using fanout::Tensor;
using fanout::View;
using fanout::backend::Memory;
using fanout_test::CountingMemory;
using fanout_test::message_of;
using fanout_test::says;

namespace {

struct Half {
  std::uint16_t bits;
};
enum class Colour : std::uint8_t { none, red };

static_assert(std::is_nothrow_default_constructible_v<Tensor<float, 2>>);
static_assert(std::is_nothrow_move_constructible_v<Tensor<float, 2>>);
static_assert(std::is_nothrow_move_assignable_v<Tensor<float, 2>>);
static_assert(std::is_copy_constructible_v<Tensor<float, 2>>);
static_assert(Tensor<Half, 3>::rank == 3);

static_assert(std::is_constructible_v<Tensor<float, 2>, int, std::size_t>);
static_assert(!std::is_convertible_v<int, Tensor<float, 1>>, "a number is no tensor");
static_assert(!std::is_constructible_v<Tensor<float, 2>, int>, "one extent for each axis");
static_assert(!std::is_constructible_v<Tensor<float, 2>, int, int, int>);
static_assert(!std::is_constructible_v<Tensor<float, 1>, double>);
static_assert(!std::is_constructible_v<Tensor<float, 1>, std::nullptr_t>);
static_assert(!std::is_constructible_v<Tensor<float, 1>, float*, int>, "taking over memory is called adopt");
static_assert(!std::is_constructible_v<Tensor<float, 1>, Tensor<double, 1>&>);
static_assert(!std::is_constructible_v<Tensor<float, 1>, Tensor<float, 2>&>);
static_assert(!std::is_convertible_v<View<float, 1>, Tensor<float, 1>>, "a copy is asked for");

template <class X>
concept HasView = requires(X&& x) {
  static_cast<X&&>(x).view();
};
template <class X>
concept HasRow = requires(X&& x) {
  static_cast<X&&>(x).row(std::size_t{});
};
template <class X>
concept HasRows = requires(X&& x) {
  static_cast<X&&>(x).rows(RowRange{});
};
template <class X>
concept HasIndex = requires(X&& x) {
  x[std::size_t{}];
};

using Matrix = Tensor<float, 2>;
static_assert(std::is_convertible_v<Matrix&, View<float, 2>>);
static_assert(std::is_convertible_v<Matrix&, View<const float, 2>>);
static_assert(std::is_convertible_v<const Matrix&, View<const float, 2>>);
static_assert(!std::is_constructible_v<View<float, 2>, const Matrix&>);
static_assert(std::is_constructible_v<View<const float, 2>, Matrix>, "refused with a sentence: tests/must_not_compile");
static_assert(!std::is_constructible_v<View<const double, 2>, Matrix>);
static_assert(!std::is_constructible_v<View<const float, 1>, Matrix>);
static_assert(HasView<Matrix&> && HasView<const Matrix&>);
static_assert(HasRow<Matrix&> && HasRow<const Matrix&>);
static_assert(HasRows<Matrix&> && HasRows<const Matrix&>);
static_assert(!HasRow<Tensor<float, 1>&>, "a row of one axis is an element");
static_assert(HasIndex<Tensor<float, 1>&> && HasIndex<Matrix&>);

static_assert(fanout::ArrayLeaf<Matrix>);
static_assert(std::is_same_v<fanout::leaf_traits<Matrix>::piece_type, View<const float, 2>>);

template <class T, std::size_t R>
bool is_aligned(const Tensor<T, R>& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0;
}

Tensor<int, 2> counted(int rows, int columns) {
  Tensor<int, 2> tensor(rows, columns);
  std::iota(tensor.begin(), tensor.end(), 0);
  return tensor;
}

/// Counts its calls, also after it was copied, and refuses to be called for another pointer.
struct CountCalls {
  int* calls;
  const void* expected;
  void operator()(const void* pointer) const {
    if (pointer == expected) ++*calls;
  }
};

}  // namespace

TEST_CASE("a tensor that was not given anything has no rows and no memory") {
  const Tensor<float, 3> none;
  CHECK(none.empty());
  CHECK(none.extents() == Extents<3>{});
  CHECK(none.data() == nullptr);
  CHECK(none.space() == fanout::host_memory);
  CHECK(none.begin() == none.end());
}

TEST_CASE("a tensor is aligned and zero-initialised, and takes extents of any integer type") {
  const Tensor<float, 1> one(std::uint8_t{7});
  const Tensor<double, 2> two(3, 5UL);
  const Tensor<std::int8_t, 3> three(short{2}, 3U, 4LL);
  const Tensor<int, 4> four(2, 1, 3, 2);
  CHECK(one.extents() == Extents<1>{{7}});
  CHECK(two.extents() == Extents<2>{{3, 5}});
  CHECK(three.extents() == Extents<3>{{2, 3, 4}});
  CHECK(four.size() == 12);
  CHECK(four.extent(2) == 3);
  for (const float x : one) CHECK(x == 0);
  for (const double x : two) CHECK(x == 0);
  for (const int x : three) CHECK(x == 0);
  for (const int x : four) CHECK(x == 0);
  CHECK((is_aligned(one) && is_aligned(two) && is_aligned(three) && is_aligned(four)));
}

TEST_CASE("elements may be of any trivially copyable type") {
  Tensor<std::complex<float>, 1> complex(3);
  CHECK(complex[2] == std::complex<float>());
  complex[2] = {1, 2};
  CHECK(Tensor<std::complex<float>, 1>(complex)[2] == std::complex<float>(1, 2));

  Tensor<bool, 2> bools(2, 2);
  CHECK_FALSE(bools(1, 1));
  bools(1, 1) = true;
  CHECK(bools.values()[3]);

  Tensor<Half, 1> halves(5);
  CHECK(halves[4].bits == 0);
  CHECK(reinterpret_cast<const std::byte*>(halves.end()) - reinterpret_cast<const std::byte*>(halves.begin()) == 10);

  Tensor<Colour, 1> colours(2);
  CHECK(colours[0] == Colour::none);
  colours[0] = Colour::red;
  CHECK(std::as_const(colours)[0] == Colour::red);

  Tensor<std::array<float, 3>, 1> points(4);
  points[3][2] = 1;
  CHECK(points.view().data()[3][2] == 1);
}

TEST_CASE("an extent of zero gives a tensor without elements that keeps its other extents") {
  const Tensor<float, 2> no_rows(0, 5);
  CHECK(no_rows.empty());
  CHECK(no_rows.extents() == Extents<2>{{0, 5}});
  const Tensor<float, 2> no_columns(5, 0);
  CHECK(no_columns.empty());
  CHECK(no_columns.row(4).empty());
  const Tensor<float, 2> copy = no_rows;
  CHECK(copy.extents() == Extents<2>{{0, 5}});
}

TEST_CASE("extents that cannot be are refused, given as numbers or as extents") {
  CHECK(says(message_of<ShapeMismatch>([] { Tensor<float, 2>(2, -3); }), "invalid extents", "found -3"));
  CHECK(says(message_of<ShapeMismatch>([] { Tensor<float, 2>::uninitialized(-2, 3); }), "found -2"));
  constexpr std::size_t large = std::size_t{1} << 40;
  const Extents<2> overflow{{large, large}};  // 2^82 bytes, which are none if the product is not checked
  CHECK(says(message_of<ShapeMismatch>([] { Tensor<float, 2>(large, large); }), "invalid extents",
             "found [1099511627776, 1099511627776]"));
  CHECK(says(message_of<ShapeMismatch>([&] { Tensor<float, 2>{overflow}; }), "invalid extents"));
  CHECK(
      says(message_of<ShapeMismatch>([&] { Tensor<float, 2>::uninitialized(overflow, Memory{}); }), "invalid extents"));
}

TEST_CASE("elements are read and written by index, row and range, in row-major order") {
  Tensor<int, 2> tensor = counted(3, 4);
  CHECK(tensor(2, 1) == 9);
  tensor(2U, 1L) = 50;
  CHECK(std::as_const(tensor)(2, 1) == 50);
  CHECK(tensor.data()[9] == 50);
  CHECK(tensor.row(2)[1] == 50);
  CHECK(std::as_const(tensor).row(0).extents() == Extents<1>{{4}});
  CHECK(tensor.rows({1, 3}).extents() == Extents<2>{{2, 4}});
  CHECK(std::as_const(tensor).rows({1, 3})(1, 1) == 50);
  tensor.values()[0] = 7;
  CHECK(std::as_const(tensor).values()[0] == 7);
  CHECK(std::as_const(tensor).values().size() == 12);
  *tensor.begin() = 8;
  CHECK(*std::as_const(tensor).begin() == 8);
  CHECK(tensor.end() - tensor.begin() == 12);

  Tensor<int, 4> deep(2, 3, 4, 5);
  deep(1, 2, 3, 4) = 6;
  CHECK(deep.data()[119] == 6);
  CHECK(deep.row(1).row(2).row(3)[4] == 6);
}

TEST_CASE("views of a tensor share its elements") {
  Tensor<int, 2> tensor = counted(3, 4);
  const View<int, 2> writer = tensor;
  writer(0, 0) = 9;
  const View<const int, 2> reader = std::as_const(tensor);
  CHECK(reader(0, 0) == 9);
  CHECK(tensor.view().data() == tensor.data());
}

TEST_CASE("a copy of a tensor has elements of its own") {
  const Tensor<int, 2> original = counted(3, 4);
  Tensor<int, 2> copy = original;
  CHECK(copy.data() != original.data());
  CHECK(is_aligned(copy));
  copy(0, 1) = 100;
  CHECK(original(0, 1) == 1);
  CHECK(copy(2, 3) == 11);
}

TEST_CASE("a tensor can be made from a view, as a copy") {
  Tensor<int, 2> original = counted(3, 4);
  const Tensor<int, 2> part(original.view().rows({1, 3}));
  original(1, 0) = 100;
  CHECK(part.extents() == Extents<2>{{2, 4}});
  CHECK(part(0, 0) == 4);
  CHECK(part(1, 3) == 11);

  std::vector<float> numbers{1, 2, 3};
  const Tensor<float, 1> of_vector(numbers);
  CHECK(of_vector[2] == 3);
  CHECK(of_vector.data() != numbers.data());
  const Tensor<float, 1> of_nothing{View<const float, 1>()};
  CHECK(of_nothing.empty());
}

TEST_CASE("a tensor that was moved from is empty and can be assigned") {
  Tensor<int, 2> original = counted(3, 4);
  const int* const data = original.data();
  Tensor<int, 2> moved = std::move(original);
  CHECK(moved.data() == data);
  CHECK(original.empty());  // NOLINTBEGIN(bugprone-use-after-move): this is what is tested
  CHECK(original.extents() == Extents<2>{});
  CHECK(original.data() == nullptr);
  original = counted(1, 2);
  CHECK(original(0, 1) == 1);
  original = std::move(moved);
  CHECK(original.data() == data);
  CHECK(original.extents() == Extents<2>{{3, 4}});
  CHECK(moved.extents() == Extents<2>{});  // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("a tensor can be assigned to itself") {
  Tensor<int, 2> tensor = counted(3, 4);
  Tensor<int, 2>& same = tensor;
  tensor = same;
  CHECK(tensor(2, 3) == 11);
  tensor = std::move(same);
  REQUIRE(tensor.extents() == Extents<2>{{3, 4}});
  CHECK(tensor(2, 3) == 11);
}

TEST_CASE("assigning a tensor of the same size keeps the memory, also for another shape") {
  Tensor<int, 2> target(3, 4);
  const int* const data = target.data();
  target = counted(3, 4);  // moved in: memory of its own
  CHECK(target.data() != data);
  const int* const kept = target.data();
  const Tensor<int, 2> source = counted(2, 6);
  target = source;
  CHECK(target.data() == kept);
  CHECK(target.extents() == Extents<2>{{2, 6}});
  CHECK(target(1, 5) == 11);
  const Tensor<int, 2> larger = counted(4, 6);
  target = larger;
  CHECK(target.extents() == Extents<2>{{4, 6}});
  CHECK(target(3, 5) == 23);
  CHECK(target.data() != larger.data());
}

TEST_CASE("a tensor of adopted memory shows it and calls the deleter once") {
  int calls = 0;
  float numbers[6] = {0, 1, 2, 3, 4, 5};
  const CountCalls deleter{&calls, numbers};
  {
    Tensor<float, 2> adopted = Tensor<float, 2>::adopt(numbers, deleter, 3, 2);
    CHECK(adopted.data() == numbers);
    CHECK(adopted.extents() == Extents<2>{{3, 2}});
    CHECK(adopted(2, 1) == 5);
    Tensor<float, 2> moved = std::move(adopted);
    Tensor<float, 2> assigned;
    assigned = std::move(moved);
    CHECK(calls == 0);
    CHECK(assigned.data() == numbers);
  }
  CHECK(calls == 1);
}

TEST_CASE("a copy of adopted memory is an ordinary tensor") {
  int calls = 0;
  float numbers[2] = {1, 2};
  Tensor<float, 1> copy;
  {
    const auto adopted = Tensor<float, 1>::adopt(numbers, CountCalls{&calls, numbers}, 2);
    copy = adopted;
    CHECK(copy.data() != numbers);
    CHECK(is_aligned(copy));
  }
  CHECK(calls == 1);
  CHECK(copy[1] == 2);
  copy = Tensor<float, 1>();
  CHECK(calls == 1);
}

TEST_CASE("assigning to a tensor of adopted memory writes there, or releases it if the size differs") {
  int calls = 0;
  float numbers[2] = {1, 2};
  auto adopted = Tensor<float, 1>::adopt(numbers, CountCalls{&calls, numbers}, 2);
  const std::vector<float> others{3, 4};
  const Tensor<float, 1> same_size(others);
  adopted = same_size;
  CHECK(numbers[1] == 4);
  CHECK(calls == 0);
  const Tensor<float, 1> larger(3);
  adopted = larger;
  CHECK(calls == 1);
}

TEST_CASE("adopting with extents that cannot be calls the deleter once and refuses") {
  int calls = 0;
  float number = 0;
  const CountCalls deleter{&calls, &number};
  CHECK_THROWS_AS((Tensor<float, 2>::adopt(&number, deleter, 1, -1)), ShapeMismatch);
  CHECK(calls == 1);
  CHECK_THROWS_AS((Tensor<float, 2>::adopt(&number, deleter, 1L << 40, 1L << 40)), ShapeMismatch);
  CHECK(calls == 2);
}

TEST_CASE("adopting no elements still calls the deleter once") {
  int calls = 0;
  float number = 0;
  { const auto none = Tensor<float, 2>::adopt(&number, CountCalls{&calls, &number}, 0, 5); }
  CHECK(calls == 1);
  { const auto null = Tensor<float, 1>::adopt(nullptr, CountCalls{&calls, nullptr}, 0); }
  CHECK(calls == 2);
}

TEST_CASE("a deleter keeps what it captured until it was called") {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> alive = owner;
  {
    float* const data = owner->data();
    const auto tensor = Tensor<float, 1>::adopt(
        data, [owner = std::move(owner)](float*) {}, 3);
    CHECK_FALSE(alive.expired());
    CHECK(tensor[2] == 3);
  }
  CHECK(alive.expired());
}

TEST_CASE("a tensor is made in the memory that it is told") {
  CountingMemory counting;
  {
    const Tensor<float, 2> tensor(Extents<2>{{3, 4}}, counting.memory());
    CHECK(tensor.space() == CountingMemory::space);
    CHECK(counting.cleared == 1);
    CHECK(counting.allocated == 1);
    CHECK(tensor.view().space() == CountingMemory::space);
    const Tensor<float, 2> copy = tensor;
    CHECK(copy.space() == CountingMemory::space);
    const Tensor<float, 2> of_view(tensor.view(), *counting.memory().operations);
    CHECK(of_view.space() == CountingMemory::space);
    CHECK(counting.copied == 2);
    const auto raw = Tensor<float, 2>::uninitialized(Extents<2>{{3, 4}}, counting.memory());
    CHECK(counting.cleared == 1);
    CHECK(counting.alive() == 4);
  }
  CHECK(counting.alive() == 0);
  counting.exhausted = true;
  CHECK_THROWS_AS((Tensor<float, 1>(Extents<1>{{3}}, counting.memory())), fanout::OutOfMemory);
}

TEST_CASE("elements in memory that the host may use in place are reached from the host") {
  constexpr auto operations = [](bool host_access) {
    fanout::backend::MemoryOperations own = fanout::backend::host_memory_operations;
    own.host_access = host_access;
    return own;
  };
  static constexpr fanout::backend::MemoryOperations managed = operations(true);
  static constexpr fanout::backend::MemoryOperations apart = operations(false);
  fanout::backend::declare_memory("managed", managed);
  fanout::backend::declare_memory("apart", apart);
  Tensor<int, 2> x({2, 3}, {{{.kind = "managed"}}, &managed});
  x(1, 2) = 6;
  CHECK(std::as_const(x)(1, 2) == 6);
  CHECK(x.values()[5] == 6);
  CHECK(*x.begin() == 0);
  CHECK(x == fanout::tensor<int>({{0, 0, 0}, {0, 0, 6}}));
  Tensor<int, 2> y({2, 3}, {{{.kind = "apart"}}, &apart});
  CHECK_THROWS_AS(static_cast<void>(y.values()), fanout::DeviceMismatch);
  CHECK_THROWS_AS(static_cast<void>(x == y), fanout::DeviceMismatch);
}

TEST_CASE("elements in another memory are not reached from the host") {
  const CountingMemory counting;
  Tensor<int, 2> matrix(Extents<2>{{3, 4}}, counting.memory());
  Tensor<int, 1> vector(Extents<1>{{3}}, counting.memory());
  const auto refused = [](const auto& touch) {
    return says(message_of<fanout::DeviceMismatch>(touch), "elements of a tensor used from the host",
                "expected host memory, found the memory of counting:0", "copy the tensor to the host first");
  };
#if FANOUT_CHECKS
  CHECK(refused([&] { matrix(0, 0) = 1; }));
  CHECK(refused([&] { static_cast<void>(std::as_const(matrix)(0, 0)); }));
  CHECK(refused([&] { vector[0] = 1; }));
  CHECK(refused([&] { static_cast<void>(std::as_const(vector)[0]); }));
#endif
  CHECK(refused([&] { static_cast<void>(matrix.values()); }));
  CHECK(refused([&] { static_cast<void>(std::as_const(matrix).values()); }));
  CHECK(refused([&] {
    for ([[maybe_unused]] const int& x : vector) continue;
  }));
  CHECK(refused([&] {
    for ([[maybe_unused]] const int& x : std::as_const(vector)) continue;
  }));
  CHECK(refused([&] { static_cast<void>(matrix == matrix); }));
  CHECK(refused([&] { static_cast<void>(Tensor<int, 2>(3, 4) == matrix.view()); }));
  CHECK_NOTHROW(static_cast<void>(matrix.rows({1, 2}).extents()));
  CHECK_NOTHROW(static_cast<void>(matrix.view().row(1).size()));
}

#if FANOUT_CHECKS
TEST_CASE("an element outside of a tensor is refused where checks are on") {
  Tensor<int, 2> x = counted(3, 4);
  CHECK(says(message_of<fanout::InvalidArgument>([&] { x(3, 0) = 1; }), "an index outside of its array",
             "expected indices below the extents [3, 4], found [3, 0]"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(std::as_const(x)(0, 4)); }), "found [0, 4]"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(x[3]); }), "[3], found [3]"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] { static_cast<void>(x[0][4]); }), "[4], found [4]"));
  CHECK_THROWS_AS(static_cast<void>(x(-1, 0)), fanout::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(x.extent(2)), fanout::InvalidArgument);
  Tensor<int, 1> none;
  CHECK_THROWS_AS(none[0] = 1, fanout::InvalidArgument);
}
#endif

TEST_CASE("extents may be written in parentheses, braces or both, signed or unsigned") {
  const std::size_t rows = 3;
  const int columns = 5;
  const Extents<2> shape{{3, 5}};
  CHECK(Tensor<double, 2>({rows, 5}).extents() == shape);
  CHECK(Tensor<double, 2>{{rows, 5}}.extents() == shape);
  CHECK(Tensor<double, 2>({rows, columns}).extents() == shape);
  CHECK(Tensor<double, 2>{rows, columns}.extents() == shape);
  CHECK(Tensor<double, 2>({3, 5}).extents() == shape);
  CHECK(Tensor<double, 2>{{3, 5}}.extents() == shape);
  CHECK(Tensor<double, 2>({3U, 5LL}, Memory{}).extents() == shape);
  CHECK(Tensor<double, 2>(shape).extents() == shape);
  CHECK(Tensor<double, 2>{shape}.extents() == shape);
  CHECK(Tensor<double, 2>({0, 5}).extents() == Extents<2>{{0, 5}});
  CHECK(Tensor<double, 2>::uninitialized({rows, columns}).extents() == shape);
  CHECK(Tensor<double, 1>(3).extents() == Extents<1>{{3}});
  CHECK(Tensor<double, 1>({3}).extents() == Extents<1>{{3}});
  CHECK(Tensor<double, 1>{3}.extents() == Extents<1>{{3}});
  CHECK(Tensor<double, 1>{{3}}.extents() == Extents<1>{{3}});
  for (const double x : Tensor<double, 2>({rows, columns})) CHECK(x == 0);
  CHECK(says(message_of<ShapeMismatch>([&] { Tensor<double, 2>({rows, -columns}); }), "invalid extents", "found -5"));
  CHECK(says(message_of<ShapeMismatch>([] {
               Tensor<double, 2>({std::size_t(-1), 2});
             }),
             "invalid extents", "found [18446744073709551615, 2]"));
}

TEST_CASE("nested braces make a tensor, and their depth is its rank") {
  CHECK(fanout::tensor<double>({{1, 2}, {3, 4}, {5, 6}}).extents() == Extents<2>{{3, 2}});
  CHECK(fanout::tensor<double>({{1, 2}, {3, 4}, {5, 6}})(2, 0) == 5);
  const Tensor<float, 1> vector = fanout::tensor({1.5F, 2.5F});
  CHECK(vector[1] == 2.5F);
  const Tensor<int, 3> cube = fanout::tensor({{{1}, {2}}, {{3}, {4}}, {{5}, {6}}});
  CHECK(cube.extents() == Extents<3>{{3, 2, 1}});
  CHECK(cube(2, 1, 0) == 6);
#if !defined(__CUDACC__)
  CHECK(fanout::tensor<float>({{1}, {2}}).extents() == Extents<2>{{2, 1}});
#endif
  CHECK(fanout::tensor<float>({7})[0] == 7);
  const double array[2][2] = {{1, 2}, {3, 4}};
  CHECK(fanout::tensor(array)(1, 0) == 3);
}

TEST_CASE("a tensor is made of a vector and extents, as a copy") {
  const int rows = 2;
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6};
  const auto x = fanout::tensor(numbers, {rows, std::size_t{3}});
  static_assert(std::is_same_v<decltype(x), const Tensor<int, 2>>);
  CHECK(x(1, 0) == 4);
  CHECK(x.data() != numbers.data());
  CHECK(is_aligned(x));
  CHECK(fanout::tensor(std::array{1, 2, 3, 4}, {2, 2})(1, 1) == 4);
  CHECK(fanout::tensor(std::span(numbers).first(3), {3, 1})(2, 0) == 3);
  CHECK(fanout::tensor<double>({1, 2, 3, 4}, {4, 1})(3, 0) == 4);
  CHECK(fanout::tensor(x, {6})[5] == 6);
  CHECK(says(message_of<ShapeMismatch>([&] {
               fanout::tensor(numbers, {4, 2});
             }),
             "tensor", "expected 8 elements, those of [4, 2], found 6"));
  CHECK_THROWS_AS(fanout::tensor(numbers, {-3, -2}), ShapeMismatch);
}

TEST_CASE("a tensor can be full of one value") {
  const std::size_t rows = 2;
  const auto x = Tensor<float, 2>::full({rows, 3}, 1.5F);
  CHECK(x.extents() == Extents<2>{{2, 3}});
  for (const float v : x) CHECK(v == 1.5F);
  CHECK(Tensor<int, 2>::full(x.extents(), 7)(1, 2) == 7);
}

TEST_CASE("tensors and views are equal if their extents and elements are") {
  const Tensor<int, 2> x = counted(3, 4);
  Tensor<int, 2> y = x;
  CHECK(x == y);
  CHECK(x == y.view());
  CHECK(y.view() == x);
  CHECK(x.view() == y.view());
  CHECK_FALSE(x != y);
  y(2, 3) = 0;
  CHECK(x != y);
  CHECK(x.rows({0, 2}) == y.rows({0, 2}));
  CHECK_FALSE(x == counted(4, 3));
  CHECK(Tensor<int, 2>(0, 4) != Tensor<int, 2>(0, 5));
  CHECK(Tensor<int, 2>() == Tensor<int, 2>());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(fanout::tensor({nan}) != fanout::tensor({nan}));
}

TEST_CASE("a view of a single byte is assigned, too") {
  Tensor<char, 1> letter(1);
  letter[0] = 'a';
  Tensor<char, 1> other(1);
  other[0] = 'b';
  letter = View<const char, 1>(other);
  CHECK(letter[0] == 'b');
}

TEST_CASE("a view is assigned as a copy, also of a part of the tensor itself") {
  Tensor<int, 2> x = counted(3, 4);
  const int* const data = x.data();
  const Tensor<int, 2> other = counted(2, 6);
  x = other.view();
  CHECK(x.data() == data);
  CHECK(x == other);
  x = x.rows({1, 2});
  CHECK(x == other.rows({1, 2}));
  x = x.view();
  CHECK(x == other.rows({1, 2}));
  x = View<const int, 2>();
  CHECK(x.empty());
  x = {};
  CHECK(x.empty());

  const CountingMemory counting;
  Tensor<int, 2> far({2, 6}, counting.memory());
  const Tensor<int, 2> twin = far;
  far = twin.view();
  CHECK(counting.alive() == 2);
  far = twin.rows({0, 1});
  CHECK(far.space() == CountingMemory::space);
  CHECK(far.extents() == Extents<2>{{1, 6}});
  x = other;
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { x = twin.view(); }), "counting:0"));
  CHECK(x == other);
}

TEST_CASE("a reshaped tensor shows the same elements") {
  Tensor<int, 2> x = counted(3, 4);
  const std::size_t rows = 2;
  CHECK(x.reshape(2, 6)(1, 0) == 6);
  CHECK(x.reshape({rows, 3, 2})(1, 2, 1) == 11);
  CHECK(std::as_const(x).reshape(12)[7] == 7);
  CHECK(x.reshape(Extents<2>{{4, 3}}).data() == x.data());
  x.reshape(12)[7] = 70;
  CHECK(x(1, 3) == 70);
  static_assert(std::is_same_v<decltype(std::as_const(x).reshape({2, 6})), View<const int, 2>>);
  CHECK(says(message_of<ShapeMismatch>([&] { x.reshape(5, 2); }), "reshape",
             "expected 12 elements, those of [3, 4], found 10, those of [5, 2]"));
  CHECK_THROWS_AS(x.reshape(5, 3), ShapeMismatch);
  CHECK_THROWS_AS(x.reshape({-3, -4}), ShapeMismatch);
}

TEST_CASE("an index of a tensor of several axes is a row") {
  Tensor<int, 3> x(2, 3, 4);
  x[1][2][3] = 5;
  CHECK(x(1, 2, 3) == 5);
  CHECK(std::as_const(x)[1].extents() == Extents<2>{{3, 4}});
  CHECK(x.view()[1][2] == x.row(1).row(2));
}

TEST_CASE("a view's type is deduced from its source, and a tensor's type from a view") {
  Tensor<int, 2> x = counted(3, 4);
  View writes = x;
  View reads = std::as_const(x);
  View same = reads;
  Tensor copy(reads);
  Tensor twin = x;
  static_assert(std::is_same_v<decltype(writes), View<int, 2>>);
  static_assert(std::is_same_v<decltype(reads), View<const int, 2>>);
  static_assert(std::is_same_v<decltype(same), View<const int, 2>>);
  CHECK(same.data() == x.data());
  static_assert(std::is_same_v<decltype(copy), Tensor<int, 2>>);
  static_assert(std::is_same_v<decltype(twin), Tensor<int, 2>>);
  CHECK(copy == writes);
  CHECK(twin.data() != x.data());
}

TEST_CASE("the rows of a tensor are its leaf's rows") {
  const Tensor<int, 2> tensor = counted(3, 4);
  using traits = fanout::leaf_traits<Tensor<int, 2>>;
  CHECK(traits::rows(tensor) == 3);
  const auto piece = traits::piece(tensor, 1, 3);
  CHECK(piece.data() == tensor.data() + 4);
  CHECK(piece.extents() == Extents<2>{{2, 4}});
}

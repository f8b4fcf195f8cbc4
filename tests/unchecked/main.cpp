// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With FANOUT_CHECKS=0, single elements are not checked; ranges and extents are. Exits with 0 if this holds.

#include <cstdio>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>

static_assert(FANOUT_CHECKS == 0);

namespace {

bool failed = false;

template <class F>
void expect(const char* what, bool throws, const F& f) {
  bool thrown = false;
  try {
    f();
  } catch (const fanout::Error&) {
    thrown = true;
  }
  if (thrown == throws) return;
  std::printf("%s %s\n", what, thrown ? "was refused" : "was not refused");
  failed = true;
}

}  // namespace

int main() {
  fanout::Tensor<int, 2> x(3, 4);
  const fanout::View v = x;
  const fanout::StridedView<int, 2> strided(v);
  volatile int sum = 0;
  // Within the memory of the tensor, so that nothing of others is read.
  expect("an element of a tensor", false, [&] { sum = x(0, 7); });
  expect("an element of a view", false, [&] { sum = v(0, 7); });
  expect("an element of a row", false, [&] { sum = v[0][7]; });
  expect("an element of a strided view", false, [&] { sum = strided(0, 7); });
  expect("a range of rows", true, [&] { static_cast<void>(v.rows({2, 4})); });
  expect("a slice", true, [&] { static_cast<void>(strided.slice(1, {2, 5})); });
  expect("extents", true, [&] { fanout::Tensor<int, 2>(3, -4); });
  expect("other extents", true, [&] { static_cast<void>(x.reshape(5, 2)); });
  return failed ? 1 : 0;
}

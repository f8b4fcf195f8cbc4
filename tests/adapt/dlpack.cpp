// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fanout/adapt/dlpack.hpp>
#include <fanout/fanout.hpp>

namespace {

using fanout::as_view;
using fanout::from_dlpack;
using fanout::Tensor;
using fanout::to_dlpack;
using fanout::View;

struct Half {
  std::uint16_t bits;
};
enum class Colour : std::uint8_t { red };

constexpr bool is(DLDataType type, int code, int bits) {
  return type.code == code && type.bits == bits && type.lanes == 1;
}

/// What another library might export: [2, 3] floats, and how often their deleter was called.
struct Foreign {
  std::vector<float> elements{0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> shape{2, 3};
  std::vector<std::int64_t> strides{3, 1};
  int deleted = 0;
  DLManagedTensor managed{
      {elements.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0}, this, &count};

  static void count(DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; }
};

}  // namespace

template <>
inline constexpr DLDataType fanout::dlpack_type<Half> = {kDLFloat, 16, 1};

static_assert(is(fanout::dlpack_type<float>, kDLFloat, 32) && is(fanout::dlpack_type<double>, kDLFloat, 64));
static_assert(is(fanout::dlpack_type<int>, kDLInt, 32) && is(fanout::dlpack_type<std::uint64_t>, kDLUInt, 64));
static_assert(is(fanout::dlpack_type<std::complex<float>>, kDLComplex, 64));
static_assert(is(fanout::dlpack_type<Colour>, kDLUInt, 8) && is(fanout::dlpack_type<Half>, kDLFloat, 16));

TEST_CASE("an exported tensor is adopted without a copy and deleted once") {
  Foreign foreign;
  {
    const Tensor<float, 2> tensor = from_dlpack<float, 2>(&foreign.managed);
    CHECK(tensor.data() == foreign.elements.data());
    CHECK(tensor.extents() == fanout::Extents<2>{2, 3});
    const fanout::ParallelModel model{[](View<const float, 2> rows) { return rows; }, fanout::host_devices(2)};
    CHECK(model(tensor)(1, 2) == 5);
    CHECK(foreign.deleted == 0);
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("a tensor without strides is row-major and begins at its byte offset") {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  foreign.managed.dl_tensor.byte_offset = 3 * sizeof(float);
  foreign.shape = {1, 3};
  foreign.managed.dl_tensor.shape = foreign.shape.data();
  CHECK(as_view<float, 2>(foreign.managed.dl_tensor)(0, 0) == 3);
  foreign.managed.deleter = nullptr;
  CHECK(from_dlpack<float, 2>(&foreign.managed)(0, 2) == 5);
}

TEST_CASE("a tensor of another layout, memory or element type is refused and deleted once") {
  Foreign foreign;
  auto& tensor = foreign.managed.dl_tensor;
  CHECK_THROWS_WITH_AS((from_dlpack<double, 2>(&foreign.managed)),
                       "a DLPack tensor has elements of another type: expected float64, found float32; name its own "
                       "element type, or convert it before the export",
                       fanout::InvalidArgument);
  CHECK(foreign.deleted == 1);
  CHECK_THROWS_WITH_AS((from_dlpack<float, 3>(&foreign.managed)),
                       "a DLPack tensor with another number of axes: expected 3, found 2", fanout::ShapeMismatch);
  CHECK(foreign.deleted == 2);
  foreign.strides = {1, 2};
  tensor.strides = foreign.strides.data();
  CHECK_THROWS_WITH_AS((as_view<const float, 2>(tensor)),
                       "a DLPack tensor is not contiguous in row-major order: expected a stride of 1 on axis 1 of [2, "
                       "3], found 2; make it contiguous before the export",
                       fanout::ShapeMismatch);
  tensor.strides = nullptr;
  tensor.device = {kDLCUDA, 1};
  CHECK_THROWS_WITH_AS(
      (as_view<const float, 2>(tensor)),
      "a DLPack tensor in another memory: expected host memory, found device 1 of type 2; copy it to the host before "
      "the export",
      fanout::DeviceMismatch);
  tensor.device = {kDLCPU, 0};
  tensor.byte_offset = 1;
  CHECK_THROWS_AS((as_view<const float, 2>(tensor)), fanout::InvalidArgument);
  tensor.byte_offset = 0;
  tensor.dtype.lanes = 4;
  CHECK_THROWS_AS((as_view<const float, 2>(tensor)), fanout::InvalidArgument);
  foreign.shape[0] = -1;
  CHECK_THROWS_AS((as_view<const float, 2>(tensor)), fanout::Error);
  CHECK_THROWS_AS((from_dlpack<float, 2>(nullptr)), fanout::InvalidArgument);
}

TEST_CASE("an exported and imported tensor has the same memory") {
  Tensor<int, 3> tensor(2, 3, 4);
  tensor(1, 2, 3) = 7;
  const int* const data = tensor.data();
  DLManagedTensor* const managed = to_dlpack(std::move(tensor));
  CHECK(managed->dl_tensor.ndim == 3);
  CHECK(managed->dl_tensor.shape[1] == 3);
  CHECK(managed->dl_tensor.strides[0] == 12);
  CHECK(managed->dl_tensor.data == data);
  const Tensor<int, 3> back = from_dlpack<int, 3>(managed);
  CHECK(back.data() == data);
  CHECK(back(1, 2, 3) == 7);
}

TEST_CASE("empty tensors and tensors of bools are exported and imported") {
  const auto none = from_dlpack<float, 2>(to_dlpack(Tensor<float, 2>(0, 5)));
  CHECK(none.extents() == fanout::Extents<2>{0, 5});
  const Tensor<bool, 1> bools(3);
  CHECK(from_dlpack<bool, 1>(to_dlpack(bools)).size() == 3);
}

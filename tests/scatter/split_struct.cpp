// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/scatter/split_struct.hpp>

#include "device/remote_device.hpp"

namespace {

using fanout::ConstView;
using fanout::Tensor;

template <class T, template <class, std::size_t> class Array>
struct Points {
  Array<T, 2> place;
  Array<int, 1> number;
};

template <template <class, std::size_t> class Array>
struct Flock {
  Points<double, Array> points;
  Array<double, 1> speed;
  fanout::First<int> step;
};

Flock<Tensor> make_flock(int rows) {
  Flock<Tensor> flock{{Tensor<double, 2>(rows, 2), Tensor<int, 1>(rows)}, Tensor<double, 1>(rows), {0}};
  for (int i = 0; i < rows; ++i) flock.points.number[static_cast<std::size_t>(i)] = i;
  return flock;
}

struct Fly {
  Flock<Tensor> forward(fanout::Context auto& ctx, const Flock<ConstView>& now) const {
    auto place = fanout::output<double>(ctx, 2);
    auto number = fanout::output<int>(ctx);
    auto speed = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < speed.size(); ++i) {
      speed[i] = now.speed[i] + now.points.number[i];
      place(i, 0) = now.points.place(i, 0) + speed[i];
      place(i, 1) = now.points.place(i, 1);
      number[i] = now.points.number[i];
    }
    return {{place, number}, speed, {now.step.value + 1}};
  }
};

}  // namespace

TEST_CASE("a struct over tensors is passed as the same struct over views of the rows") {
  const Flock<Tensor> flock = make_flock(5);
  const int* const first = flock.points.number.data();
  const fanout::ParallelModel model{[first](const Flock<ConstView>& rows) {
                                      CHECK(rows.points.number.data() == first + rows.points.number[0]);
                                      return rows.speed.size() + rows.points.place.extent(0);
                                    },
                                    fanout::host_devices(2)};
  const auto sizes = model(flock);
  CHECK(sizes == fanout::tensor<std::size_t>({6, 4}));
}

TEST_CASE("a struct over tensors that forward returns can be passed to the next call") {
  const fanout::ParallelModel fly{Fly{}, fanout::host_devices(3)};
  Flock<Tensor> flock = make_flock(7);
  for (int n = 0; n < 3; ++n) flock = fly(flock);
  CHECK(flock.step.value == 3);
  CHECK(flock.speed[6] == 18);
  CHECK(flock.points.place(6, 0) == 36);

  Flock<Tensor> next = flock;
  const double* const data = next.speed.data();
  fly.into(next)(flock);
  CHECK(next.speed.data() == data);
  CHECK(next.step.value == 4);
  CHECK(next.points.place(6, 0) == 60);
}

TEST_CASE("structs over tensors are split inside other trees") {
  const fanout::ParallelModel model{
      [](const std::vector<Points<float, ConstView>>& all) {
        return std::vector<int>{static_cast<int>(all[0].number.size()), static_cast<int>(all[1].place.size())};
      },
      fanout::host_devices(2)};
  const Points<float, Tensor> points{Tensor<float, 2>(3, 4), Tensor<int, 1>(3)};
  CHECK(model(std::vector{points, points}) == std::vector{2, 8, 1, 4});
  const Points<float, ConstView> views{points.place, points.number};
  CHECK(model(std::vector{views, views}) == std::vector{2, 8, 1, 4});
}

TEST_CASE("rows of a struct over tensors are brought to a device with a memory of its own") {
  const fanout::ParallelModel model{[](const Flock<ConstView>& rows) {
                                      CHECK_FALSE(rows.speed.space() == fanout::host_memory);
                                      return std::vector{static_cast<int>(rows.speed.size())};
                                    },
                                    fanout::DeviceSet(std::vector{fanout_test::RemoteDevice(0)})};
  CHECK(model(make_flock(5)) == std::vector{5});
}

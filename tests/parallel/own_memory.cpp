// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address, thread
//
// Models on devices with a memory of their own, which the host cannot touch: what is moved, when, and where results
// are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>

#include "device/remote_device.hpp"

using fanout::Context;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::to;
using fanout::to_host;
using fanout::View;
using fanout::backend::Memory;
using fanout_test::remote_devices;
using fanout_test::RemoteDevice;
using fanout_test::RemoteMemory;
using namespace fanout::literals;

namespace {

template <class T, std::size_t R>
View<T, R> reached(const View<T, R>& view) {
  return {view.space() == fanout::host_memory ? view.data() : RemoteMemory::reach(view.data()), view.extents()};
}

Tensor<float, 2> numbers(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> tensor(rows, columns);
  float next = 1;
  for (float& value : tensor) value = next++;
  return tensor;
}

struct Scale {
  Tensor<float, 1> factor;

  auto forward(Context auto& ctx, View<const float, 2> x) const {
    CHECK(x.space() == ctx.device().memory().space);
    CHECK(factor.space() == ctx.device().memory().space);
    auto y = fanout::output<float>(ctx, x.extent(1));
    const auto from = reached(x);
    const auto into = reached(View<float, 2>(y));
    const auto by = reached(factor.view());
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      for (std::size_t k = 0; k < x.extent(1); ++k) into(i, k) = by[k] * from(i, k);
    }
    return y;
  }
};

Scale scale() {
  Scale model{Tensor<float, 1>(3)};
  for (std::size_t k = 0; k < 3; ++k) model.factor[k] = static_cast<float>(k + 1);
  return model;
}

void check_scaled(const Tensor<float, 2>& y, const Tensor<float, 2>& x) {
  REQUIRE(y.extents() == x.extents());
  for (std::size_t i = 0; i < x.extent(0); ++i) {
    for (std::size_t k = 0; k < 3; ++k) CHECK(y(i, k) == static_cast<float>(k + 1) * x(i, k));
  }
}

struct Counting {
  fanout::Mean<Tensor<double, 1>> mean;
  fanout::Sum<long> rows;
  void forward(Context auto& ctx, View<const float, 2> x) {
    CHECK(mean.value.space() == ctx.device().memory().space);
    const auto own = reached(mean.value.view());
    const auto from = reached(x);
    own[0] = 0;
    for (std::size_t i = 0; i < x.extent(0); ++i) own[0] += from(i, 0) / static_cast<double>(x.extent(0));
    rows.value += static_cast<long>(x.extent(0));
  }
};

struct Adds {
  Tensor<float, 1> sum;
  float forward(Context auto& ctx, View<const float, 2>) {
    CHECK(sum.space() == ctx.device().memory().space);
    return reached(sum.view())[0]++;
  }
};

}  // namespace

TEST_CASE("inputs and the model are moved to the devices, and results lie in the main device's memory") {
  const auto x = numbers(7, 3);
  const std::size_t before = RemoteMemory::alive();
  {
    const ParallelModel model{scale(), remote_devices(3)};
    const auto y = model(x);
    CHECK(y.space() == RemoteDevice(0).memory().space);
    check_scaled(to_host(y), x);
    CHECK_FALSE(model.replica(1).shares_original());
  }
  CHECK(RemoteMemory::alive() == before);
}

TEST_CASE("results go to the host if it is asked for, and an input that lies there already is not moved") {
  const auto x = numbers(6, 3);
  const ParallelModel model{scale(), remote_devices(2), Options{.output = fanout::DeviceId{"host"}}};
  check_scaled(model(x), x);
  const auto there = to(x, RemoteDevice(0));
  CHECK(there.space() == RemoteDevice(0).memory().space);
  const ParallelModel one{scale(), remote_devices(1)};
  one(there);
  const std::size_t sent = RemoteMemory::counts().sent;
  const auto y = one(there);
  CHECK(RemoteMemory::counts().sent == sent);
  check_scaled(to_host(y), x);
}

TEST_CASE("an input in another device's memory is moved, from remote to remote and to the host") {
  const auto x = numbers(6, 3);
  const auto there = to(x, RemoteDevice(1));
  const ParallelModel remote{scale(), remote_devices(2)};
  check_scaled(to_host(remote(there)), x);
  const ParallelModel host{scale(), fanout::host_devices(2)};
  check_scaled(host(there), x);
}

TEST_CASE("a model is copied once for each version, small arrays together, and refreshed in place") {
  const auto x = numbers(4, 3);
  ParallelModel model{scale(), remote_devices(2)};
  model(x);
  const float* const data = model.replica(1).model().factor.data();
  int transferred = RemoteMemory::counts().transferred;
  model(x);
  CHECK(RemoteMemory::counts().transferred - transferred == 3);  // two shards of x, one shard of y
  model.update([](Scale& s) {
    for (float& f : s.factor) f *= 2;
  });
  auto y = to_host(model(x));
  CHECK(y(3, 2) == 6 * x(3, 2));
  CHECK(model.replica(1).model().factor.data() == data);
}

TEST_CASE("a model whose arrays lie on the main device is shared there and copied elsewhere") {
  const auto x = numbers(4, 3);
  const ParallelModel model{to(scale(), RemoteDevice(0)), remote_devices(2)};
  check_scaled(to_host(model(x)), x);
  CHECK(model.replica(0).shares_original());
  CHECK_FALSE(model.replica(1).shares_original());
}

TEST_CASE("replicas follow a model whose arrays an update moves from memory to memory") {
  const auto x = numbers(4, 3);
  ParallelModel model{scale(), remote_devices(2)};
  check_scaled(to_host(model(x)), x);
  const std::size_t copies = RemoteMemory::alive();
  const auto place = [&](const Memory& memory, float first) {
    model.update([&](Scale& s) {
      Scale there = scale();
      there.factor[0] = first;
      s = to(there, memory);
    });
    const auto y = to_host(model(x));
    for (std::size_t i = 0; i < 4; ++i) CHECK(y(i, 0) == first * x(i, 0));  // two rows of each device
  };
  const auto shared = [&model] {
    return std::pair{model.replica(0).shares_original(), model.replica(1).shares_original()};
  };
  place(RemoteDevice(0).memory(), 10);  // from copies on both to the original on one
  CHECK(shared() == std::pair{true, false});
  place(RemoteDevice(0).memory(), 20);
  CHECK(shared() == std::pair{true, false});
  place(RemoteDevice(1).memory(), 30);
  CHECK(shared() == std::pair{false, true});
  place(Memory{}, 40);
  CHECK(shared() == std::pair{false, false});
  place(RemoteDevice(1).memory(), 50);
  CHECK(shared() == std::pair{false, true});
  place(RemoteDevice(2).memory(), 60);  // no device of the model
  CHECK(shared() == std::pair{false, false});
  place(Memory{}, 70);
  CHECK(RemoteMemory::alive() == copies);
}

TEST_CASE("copies that forward changes also follow a model that moves between memories") {
  const auto x = numbers(4, 3);
  ParallelModel model{Adds{Tensor<float, 1>(1)}, remote_devices(2)};
  const auto counted = [&] {
    const auto sums = to_host(model(x));
    return std::pair{sums[0], sums[1]};
  };
  float first = 0;
  for (const Memory& memory : {Memory{}, RemoteDevice(0).memory(), RemoteDevice(1).memory(), Memory{}}) {
    first += 10;
    model.update([&](Adds& adds) {
      adds.sum = Tensor<float, 1>(1);
      adds.sum[0] = first;
      adds = to(adds, memory);
    });
    CHECK(counted() == std::pair{first, first});
    CHECK(counted() == std::pair{first + 1, first + 1});
  }
}

TEST_CASE("an update waits for all devices before it changes the model") {
  const auto x = numbers(6, 3);
  ParallelModel model{scale(), remote_devices(3)};
  const auto pending = model.async(x);  // whose devices may go on when its shards have ended
  for (int i = 0; i < 2; ++i) {
    const int before = RemoteDevice::synchronized();
    model.update([&](Scale&) { CHECK(RemoteDevice::synchronized() == before + 3); });
  }
}

TEST_CASE("host and remote devices run one model together") {
  const auto x = numbers(9, 3);
  const ParallelModel model{scale(), fanout::host_devices(1) | remote_devices(2)};
  const auto y = model(x);
  CHECK(y.space() == fanout::host_memory);
  check_scaled(y, x);
  const ParallelModel other{scale(), remote_devices(1) | fanout::host_devices(2)};
  check_scaled(to_host(other(x)), x);
}

TEST_CASE("host shards write into the result that is returned, also where the first shard's memory is another") {
  const auto x = numbers(9, 3);
  std::vector<const float*> written(3, nullptr);
  const auto forward = [&written](Context auto& ctx, View<const float, 2> rows) {
    auto y = fanout::output<float>(ctx, 3);
    const auto into = reached(View<float, 2>(y));
    std::ranges::copy(reached(rows), into.begin());
    written[ctx.rank()] = into.data();
    return y;
  };
  const ParallelModel model{forward, remote_devices(1) | fanout::host_devices(2),
                            Options{.output = fanout::DeviceId{"host"}}};
  const auto y = model(x);
  CHECK(std::ranges::equal(y, x));
  CHECK(written[1] == y.data() + 3 * 3);
  CHECK(written[2] == y.data() + 6 * 3);
}

TEST_CASE("trees, vectors, broadcast values and other axes are moved") {
  const auto x = numbers(4, 6);
  Tensor<int, 1> table(3);
  for (std::size_t i = 0; i < 3; ++i) table[i] = static_cast<int>(10 * i);
  const std::vector<double> v{1, 2, 3, 4, 5, 6};
  const auto forward = [](Context auto& ctx, const auto& tree, std::span<const double> w, const Tensor<int, 1>& all) {
    const auto space = ctx.device().memory().space;
    const auto part = reached(tree["x"_k]);
    CHECK(tree["x"_k].space() == space);
    CHECK(part.extents() == fanout::Extents<2>{4, 2});
    CHECK(all.space() == space);
    CHECK(reached(all.view())[2] == 20);
    double sum = 0;
    const double* data = space == fanout::host_memory ? w.data() : RemoteMemory::reach(w.data());
    for (std::size_t i = 0; i < w.size(); ++i) sum += data[i];
    return std::tuple{sum, part(3, 1)};
  };
  const ParallelModel model{forward, remote_devices(3)};
  const auto [sums, last] = model(dict("x"_k = fanout::split<1>(x)), v, fanout::broadcast(table));
  CHECK(std::vector<double>(sums.begin(), sums.end()) == std::vector<double>{3, 7, 11});
  CHECK(std::vector<float>(last.begin(), last.end()) == std::vector<float>{20, 22, 24});
}

TEST_CASE("output rules combine values on several devices") {
  const auto x = numbers(4, 3);
  const auto forward = [](Context auto& ctx, View<const float, 2> rows) {
    auto y = fanout::empty<float>(ctx, 3);
    const auto from = reached(rows);
    const auto sum = reached(y);
    for (std::size_t k = 0; k < 3; ++k) {
      sum[k] = 0;
      for (std::size_t i = 0; i < rows.extent(0); ++i) sum[k] += from(i, k);
    }
    return dict("sum"_k = fanout::psum(y), "all"_k = fanout::stack(y), "first"_k = fanout::first(y),
                "left"_k = fanout::sharded(y));
  };
  const ParallelModel model{forward, remote_devices(2)};
  auto result = model(x);
  CHECK(result["sum"_k].space() == RemoteDevice(0).memory().space);
  CHECK(to_host(result["sum"_k])[0] == 1 + 4 + 7 + 10);
  CHECK(to_host(result["all"_k])(1, 2) == 9 + 12);
  CHECK(to_host(result["first"_k])[1] == 2 + 5);
  CHECK(result["left"_k][1].space() == RemoteDevice(1).memory().space);
  CHECK(to_host(gather(std::move(result["left"_k])))[3] == 7 + 10);
}

TEST_CASE("fields that are combined stay where each replica has them") {
  const ParallelModel model{Counting{Tensor<double, 1>(1), 0L}, remote_devices(2)};
  for (int call = 1; call <= 2; ++call) {
    model(numbers(5, 1));
    CHECK(model.model().mean.value[0] == doctest::Approx(3));
    CHECK(model.model().rows == 5 * call);
    CHECK(model.replica(1).model().mean.value.space() == RemoteDevice(1).memory().space);
  }
}

TEST_CASE("a failed allocation leaves the model usable and leaks nothing") {
  const auto x = numbers(6, 3);
  const std::size_t before = RemoteMemory::alive();
  {
    const ParallelModel model{scale(), remote_devices(2)};
    int failed = 0;
    for (int n = 1; n < 100; ++n) {
      RemoteMemory::failing() = n;
      try {
        const auto y = model(x);
        if (RemoteMemory::failing() > 0) break;  // nothing was left to fail
      } catch (const fanout::Error&) {
        ++failed;
      }
      RemoteMemory::failing() = 0;
      check_scaled(to_host(model(x)), x);
    }
    RemoteMemory::failing() = 0;
    CHECK(failed > 3);
  }
  CHECK(RemoteMemory::alive() == before);
}

TEST_CASE("an inout argument outside of the device's memory is refused with the reason") {
  Tensor<float, 1> state(4);
  const ParallelModel model{[](View<float, 1>) {}, remote_devices(2)};
  CHECK_THROWS_AS(model(fanout::inout(state)), fanout::DeviceMismatch);
}

TEST_CASE("a call waits for its devices' pending work, whose failure is a forward's failure") {
  const auto x = numbers(6, 3);
  const ParallelModel model{scale(), remote_devices(3)};
  model(x);
  CHECK(RemoteDevice::open_completions() == 0);
  RemoteDevice::breaks() = true;
  try {
    model(x);
    FAIL("nothing was thrown");
  } catch (const fanout::ReplicaError& error) {
    CHECK(error.failures().size() == 1);
    CHECK(std::string(error.what()).find("broke down") != std::string::npos);
  }
  check_scaled(to_host(model(x)), x);
}

TEST_CASE("a dropped result is waited for too, and a forward that throws leaves no work in flight") {
  const auto x = numbers(6, 3);
  const ParallelModel model{scale(), remote_devices(2)};
  { const auto pending = model.async(x); }
  CHECK(RemoteDevice::open_completions() == 0);
  const int before = RemoteDevice::synchronized();
  const ParallelModel throws{[](View<const float, 2>) { throw std::runtime_error("no"); }, remote_devices(2)};
  CHECK_THROWS_AS(throws(x), fanout::ReplicaError);
  CHECK(RemoteDevice::synchronized() >= before + 2);
}

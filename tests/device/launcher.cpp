// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/device/launcher.hpp>

#include "device/toy_device.hpp"

namespace {

struct CalledWith {
  std::vector<std::size_t>* indices;
  std::thread::id* thread;
  void operator()(std::size_t i) const {
    indices->push_back(i);
    *thread = std::this_thread::get_id();
  }
};

}  // namespace

// A kind of device whose work is done by the thread that entered it says so in one line.
template <>
struct fanout::backend::Launcher<fanout_test::ToyDevice> : fanout::backend::LoopLauncher {};

TEST_CASE_TEMPLATE("a loop launcher makes each call once, in the calling thread", D, fanout::HostDevice,
                   fanout_test::ToyDevice) {
  const D device = D::visible().front();
  std::vector<std::size_t> indices;
  std::thread::id thread;
  fanout::backend::Launcher<D>::launch(device, 4, CalledWith{&indices, &thread});
  CHECK(indices == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(thread == std::this_thread::get_id());

  fanout::backend::Launcher<D>::launch(device, 0, CalledWith{&indices, &thread});
  CHECK(indices.size() == 4);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <utility>

#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/stream.hpp>

#include "cuda/gpus.hpp"
#include "support/message_of.hpp"

namespace cuda = fanout::cuda;

TEST_CASE("rule 167: an event is made when it is first recorded, and is done before that") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  cuda::Event event;
  CHECK(event.get() == nullptr);
  CHECK(event.device() == -1);
  CHECK(event.is_done());
  CHECK_NOTHROW(event.synchronize());
  CHECK_NOTHROW(stream.wait(event));

  fanout_test::Barrier barrier;
  fanout_test::call_in(stream, barrier);
  stream.record(event);
  CHECK(event.get() != nullptr);
  CHECK(event.device() == 0);
  CHECK_FALSE(event.is_done());
  CHECK(::cudaPeekAtLastError() == cudaSuccess);  // that it is not done is no error
  barrier.open();
  event.synchronize();
  CHECK(event.is_done());
}

TEST_CASE("rule 167: an event is recorded on one GPU only, and waited for on any") {
  if (!fanout_test::has_gpus(2)) return;
  const fanout_test::Watched watched;
  const cuda::Stream first(0);
  const cuda::Stream second(1);
  cuda::Event event;
  fanout_test::Barrier barrier;
  int order = 0;
  auto note = [&order] { order = 1; };
  fanout_test::call_in(first, barrier);
  fanout_test::call_in(first, note);
  first.record(event);
  second.wait(event);
  int seen = -1;
  auto look = [&] { seen = order; };
  fanout_test::call_in(second, look);
  CHECK_FALSE(second.is_idle());
  barrier.open();
  second.synchronize();
  CHECK(seen == 1);

  CHECK_THROWS_AS(second.record(event), fanout::DeviceMismatch);
  CHECK(fanout_test::message_of([&] { second.record(event); }).find("expected cuda:0, found cuda:1") !=
        std::string::npos);
  CHECK_NOTHROW(first.record(event));
}

TEST_CASE("rule 167: the time between two events needs events with timing") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  cuda::Event begin(cuda::Timing::on);
  cuda::Event end(cuda::Timing::on);
  cuda::Event untimed;
  CHECK_THROWS_AS(static_cast<void>(end.elapsed_since(begin)), fanout::InvalidArgument);
  stream.record(begin);
  stream.record(end);
  stream.record(untimed);
  CHECK(end.elapsed_since(begin) >= 0.0);
  CHECK(begin.elapsed_since(begin) == 0.0);
  CHECK(fanout_test::says(fanout_test::message_of([&] { static_cast<void>(end.elapsed_since(untimed)); }),
                          "expected both recorded on one device, made with fanout::cuda::Timing::on", "without timing",
                          " and "));
}

TEST_CASE("an event can be moved, released to a native handle and adopted from one") {
  if (!fanout_test::has_gpus(1)) return;
  const fanout_test::Watched watched;
  const cuda::Stream stream(0);
  cuda::Event event;
  stream.record(event);
  cudaEvent_t handle = event.get();
  cuda::Event moved(std::move(event));
  CHECK(moved.get() == handle);
  event = std::move(moved);
  CHECK(event.get() == handle);
  CHECK(event.release() == handle);
  CHECK(event.get() == nullptr);
  CHECK(event.device() == -1);
  const cuda::Event adopted = cuda::Event::adopt(handle, 0);
  CHECK(adopted.get() == handle);
  adopted.synchronize();
}

TEST_CASE("events leave no native ones behind, also those on a thread without a context") {
  if (!fanout_test::has_stand_in(1)) return;
  const fanout_test::Watched watched;
  const int before = stand_in_alive("events");
  {
    const cuda::Stream stream(0);
    cuda::Event event;
    stream.record(event);
    stream.record(event);
    CHECK(stand_in_alive("events") == before + 1);
    stream.synchronize();
  }
  CHECK(stand_in_alive("events") == before);
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each of the two libraries exports. They are compiled with hidden visibility, so these are all.
#pragma once

#include <cstdio>

#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/worker/registry.hpp>

namespace {

/// A library's own model: calls back in each shard.
struct CallBack {
  int forward(fanout::View<const int, 1>, int (*back)()) const { return back(); }
};

}  // namespace

#define FANOUT_TEST_EXPORT(type) extern "C" __attribute__((visibility("default"))) type

/// Defines a library's functions:
///   SIDE_registry()      its registry;
///   SIDE_worker()        its worker of host:0 of two;
///   SIDE_epoch()         its fork epoch;
///   SIDE_call(back)      calls its model, which calls `back` in each of its two shards; what back returned, together,
///                        or -1000 if a fanout::Error came, alone or in a ReplicaError;
///   SIDE_update()        updates its model: 0, or 1 if that is an error.
#define FANOUT_TEST_SIDE(side)                                                            \
  static auto& side##_model() {                                                           \
    static auto& model = *new fanout::ParallelModel(CallBack{}, fanout::host_devices(2)); \
    return model;                                                                         \
  }                                                                                       \
  FANOUT_TEST_EXPORT(const void*) side##_registry();                                      \
  const void* side##_registry() { return &fanout::backend::registry(); }                  \
  FANOUT_TEST_EXPORT(const void*) side##_worker();                                        \
  const void* side##_worker() { return &fanout::host_devices(2)[0].worker(); }            \
  FANOUT_TEST_EXPORT(unsigned) side##_epoch();                                            \
  unsigned side##_epoch() { return fanout::detail::fork_epoch(); }                        \
  FANOUT_TEST_EXPORT(int) side##_call(int (*back)());                                     \
  int side##_call(int (*back)()) {                                                        \
    try {                                                                                 \
      const auto returned = side##_model()(fanout::Tensor<int, 1>(2), back);              \
      return returned(0) + returned(1);                                                   \
    } catch (const fanout::Error& error) {                                                \
      std::printf(#side "_call: %s\n", error.what());                                     \
      return -1000;                                                                       \
    }                                                                                     \
  }                                                                                       \
  FANOUT_TEST_EXPORT(int) side##_update();                                                \
  int side##_update() {                                                                   \
    try {                                                                                 \
      side##_model().update([](auto&) {});                                                \
      return 0;                                                                           \
    } catch (const fanout::Error&) {                                                      \
      return 1;                                                                           \
    }                                                                                     \
  }

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// The order in which the stages of a Pipeline run the micro-batches of a training step. It is data: GPipe,
/// OneForwardOneBackward, Interleaved and ZeroBubble make one, and so may any function:
///
///     Schedule mine(const Schedule::Shape& shape) { ... }
///     Pipeline net{PipelineOptions{.schedule = mine}, stage(...), stage(...)};
///
/// A pipeline checks a schedule before anything runs: see Pipeline::train().
struct Schedule {
  /// What a stage does with a micro-batch. `weights` is the second half of a split backward: backward_weights().
  enum class Pass : unsigned char { forward, backward, weights };

  struct Step {
    std::size_t stage;
    std::size_t micro_batch;
    Pass pass;
    friend bool operator==(const Step&, const Step&) = default;
  };

  /// What a schedule is made for.
  struct Shape {
    std::size_t micro_batches = 0;
    std::vector<std::size_t> devices;  ///< that of each stage: its first one. Numbered from 0, as the stages name them
  };

  /// The steps of an order run one after the other. Those of two orders run at the same time, as soon as they can: a
  /// step waits for the step of another stage that gives it what it takes. A stage has all its steps in one order. The
  /// stages of an order have the same first device.
  std::vector<std::vector<Step>> orders;
};

/// All micro-batches go forward, then all go back. Each stage keeps the states of all micro-batches. Of p equal stages
/// and m micro-batches, each device is busy for m / (m + p - 1) of the time. Huang et al. 2019, arXiv:1811.06965.
struct GPipe {
  FANOUT_INLINE Schedule operator()(const Schedule::Shape& shape) const;
};

/// Each stage goes back as soon as it can, and then forward and back in turns (1F1B). Stage s of p keeps the states of
/// p - s micro-batches, and is as busy as with GPipe. Narayanan et al. 2019 (PipeDream-Flush, arXiv:2006.09503).
struct OneForwardOneBackward {
  FANOUT_INLINE Schedule operator()(const Schedule::Shape& shape) const;
};

/// 1F1B for several stages on each device: of p devices, stage s is on device s % p. So the devices are idle for less
/// time: m / (m + (p - 1) / v) is busy if there are v stages on each, and p divides m. Narayanan et al. 2021,
/// arXiv:2104.04473. Throws InvalidArgument for other devices.
struct Interleaved {
  FANOUT_INLINE Schedule operator()(const Schedule::Shape& shape) const;
};

/// For stages that split backward, so that the gradients of the weights can wait. Then no device is idle between its
/// first step and its last one, if forward, backward_input and backward_weights take the same time and there are at
/// least 2 p - 1 micro-batches for p stages. Each stage keeps the states of up to 2 p - 1 micro-batches. Each stage is
/// on a device of its own. Qi et al. 2023 (ZB-H2), arXiv:2401.10241.
struct ZeroBubble {
  FANOUT_INLINE Schedule operator()(const Schedule::Shape& shape) const;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/schedule/schedule.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// An order in which `ahead` forward steps come first. Then a backward step follows each forward step.
inline std::vector<Schedule::Step> forward_and_back_in_turns(const std::vector<Schedule::Step>& forward,
                                                             const std::vector<Schedule::Step>& backward,
                                                             std::size_t ahead) {
  std::vector<Schedule::Step> order;
  for (std::size_t i = 0; i < forward.size() + ahead; ++i) {
    if (i < forward.size()) order.push_back(forward[i]);
    if (i >= ahead) order.push_back(backward[i - ahead]);
  }
  return order;
}

/// The steps of this pass of a stage.
inline std::vector<Schedule::Step> steps_of(std::size_t stage, std::size_t micro_batches, Schedule::Pass pass) {
  std::vector<Schedule::Step> steps;
  for (std::size_t k = 0; k < micro_batches; ++k) steps.push_back({stage, k, pass});
  return steps;
}

}  // namespace detail

Schedule GPipe::operator()(const Schedule::Shape& shape) const {
  Schedule made;
  for (std::size_t s = 0; s < shape.devices.size(); ++s) {
    const std::size_t m = shape.micro_batches;
    made.orders.push_back(detail::forward_and_back_in_turns(detail::steps_of(s, m, Schedule::Pass::forward),
                                                            detail::steps_of(s, m, Schedule::Pass::backward), m));
  }
  return made;
}

Schedule OneForwardOneBackward::operator()(const Schedule::Shape& shape) const {
  Schedule made;
  const std::size_t stages = shape.devices.size();
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t m = shape.micro_batches;
    made.orders.push_back(detail::forward_and_back_in_turns(detail::steps_of(s, m, Schedule::Pass::forward),
                                                            detail::steps_of(s, m, Schedule::Pass::backward),
                                                            std::min(stages - s - 1, m)));
  }
  return made;
}

Schedule Interleaved::operator()(const Schedule::Shape& shape) const {
  const std::size_t stages = shape.devices.size();
  const std::size_t p = *std::max_element(shape.devices.begin(), shape.devices.end()) + 1;
  const auto refuse = [&](const std::string& found) {
    throw InvalidArgument(explain({.what = "the schedule Interleaved does not fit the devices of the stages",
                                   .expected = detail::Text() << "the same number of stages on each of " << p
                                                              << " devices, stage s on device s % " << p,
                                   .found = found}));
  };
  if (stages % p != 0) refuse(std::to_string(stages) + " stages");
  for (std::size_t s = 0; s < stages; ++s) {
    if (shape.devices[s] != s % p) refuse(detail::Text() << "stage " << s << " on device " << shape.devices[s]);
  }
  // Micro-batches go through the stages of a device in groups of at least p, so that the first one of a group has come
  // round when the device gets to the next stage.
  const std::size_t groups = std::max<std::size_t>(1, shape.micro_batches / p);
  const std::size_t largest = (shape.micro_batches + groups - 1) / groups;
  Schedule made;
  for (std::size_t d = 0; d < p; ++d) {
    std::vector<Schedule::Step> forward;
    std::vector<Schedule::Step> backward;
    for (std::size_t group = 0; group < groups; ++group) {
      for (std::size_t s = d; s < stages; s += p) {
        for (std::size_t k = shape.micro_batches * group / groups; k < shape.micro_batches * (group + 1) / groups;
             ++k) {
          forward.push_back({s, k, Schedule::Pass::forward});
          backward.push_back({stages - p + 2 * d - s, k, Schedule::Pass::backward});
        }
      }
    }
    const std::size_t ahead = 2 * (p - d - 1) + (stages / p - 1) * largest;
    made.orders.push_back(detail::forward_and_back_in_turns(forward, backward, std::min(ahead, forward.size())));
  }
  return made;
}

Schedule ZeroBubble::operator()(const Schedule::Shape& shape) const {
  using Pass = Schedule::Pass;
  const std::size_t p = shape.devices.size();
  const std::size_t m = shape.micro_batches;
  struct Done {
    std::size_t passes[3] = {};
    std::size_t operator[](Pass pass) const noexcept { return passes[static_cast<std::size_t>(pass)]; }
  };
  std::vector<Done> now(p);
  Schedule made;
  made.orders.resize(p);
  // All steps take the same time. At each time, a stage goes back if it can, else forward, and else has time for the
  // gradients of weights. At first it goes forward as often as there is time before it goes back. The number of kept
  // states is limited. The limit also makes the gradients of the weights keep up.
  const auto choose = [&](std::size_t s) {
    const Done& done = now[s];
    const std::size_t given_back = s + 1 == p ? done[Pass::forward] : now[s + 1][Pass::backward];
    if (done[Pass::backward] < given_back) return Pass::backward;
    const bool has_input = done[Pass::forward] < (s == 0 ? m : now[s - 1][Pass::forward]);
    const bool is_early = done[Pass::forward] - done[Pass::backward] < 2 * (p - s) - 1;
    const bool has_room = done[Pass::forward] - done[Pass::weights] < 2 * p - 1;
    return has_input && is_early && has_room ? Pass::forward : Pass::weights;
  };
  const auto has_ended = [m](const Done& done) { return done[Pass::weights] == m; };
  while (!std::all_of(now.begin(), now.end(), has_ended)) {
    std::vector<Done> next = now;
    for (std::size_t s = 0; s < p; ++s) {
      const Pass pass = choose(s);
      if (pass == Pass::weights && now[s][Pass::weights] == now[s][Pass::backward]) continue;  // idle
      made.orders[s].push_back({s, next[s].passes[static_cast<std::size_t>(pass)]++, pass});
    }
    now = next;
  }
  return made;
}

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fanout: contenders PART_POLICY, where the part is bare, the fork-join below everything, or model, a whole call with
// one leaf in and one out; and the policy spin, park or adaptive.

#include <dispatch/cases.hpp>
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/fanout.hpp>
#include <optional>
#include <string>

namespace {

using benchmarks::Bodies;

struct Model {
  const Bodies* bodies;

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1>) const {
    (*bodies)(static_cast<std::size_t>(ctx.rank()));
    return fanout::output<float>(ctx);
  }
};

fanout::DeviceSet<fanout::HostDevice> devices_that(const benchmarks::Slice& slice, const std::string& policy) {
  if (policy == "spin") return fanout::host_devices({.count = 2, .wait = fanout::Spin{}});
  if (policy == "park") return fanout::host_devices({.count = 2, .wait = fanout::Park{}});
  if (policy == "adaptive") return fanout::host_devices(2);
  slice.fault("no policy " + policy);
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  const std::string contender = slice.contender() == "default" ? "model_adaptive" : slice.contender();
  const std::string part = contender.substr(0, contender.find('_'));
  const auto devices = devices_that(slice, contender.substr(contender.find('_') + 1));
  if (part == "bare") {
    const fanout::Plan plan{{{0, 1}, 0}, {{1, 2}, 1}};
    const fanout::detail::DeviceTable table(devices);
    fanout::detail::CallStatistics times;
    return benchmarks::run_dispatch(
        slice, [&](const Bodies& bodies) { fanout::detail::run_shards(plan, table, bodies, &times); });
  }
  if (part != "model") slice.fault("no contender " + contender);
  const fanout::Tensor<float, 1> input(2);
  const Bodies* bodies_now = nullptr;
  // The model is made once, for the bodies of the first call: there is one such object in a process.
  const auto make = [&](const Bodies& bodies) { return fanout::ParallelModel{Model{&bodies}, devices}; };
  std::optional<decltype(make(*bodies_now))> model;
  return benchmarks::run_dispatch(slice, [&](const Bodies& bodies) {
    if (bodies_now == nullptr) {
      bodies_now = &bodies;
      model.emplace(make(bodies));
    }
    const auto output = (*model)(input);
  });
}

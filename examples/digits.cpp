// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a small network on handwritten digits, data-parallel: every device computes the gradients on its rows of the
// batch, pmean() makes them those of the whole batch, update() applies them. The result is the same on any number of
// devices, up to rounding, and of any kind: what forward() does is done by launch(), on cores in loops, on GPUs in
// kernels. Threads load the batches ahead. A run can be saved after any step, and resumed on other devices.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fanout/data.hpp>
#include <fanout/fanout.hpp>
#include <fanout/observe.hpp>
#include <fanout/stages.hpp>
#include <fanout/state.hpp>

#include "support/arguments.hpp"
#include "support/digits_data.hpp"
#include "support/digits_network.hpp"
#include "support/digits_stages.hpp"
#include "support/linear.hpp"
#include "support/loss_log.hpp"

using namespace fanout::literals;
using examples::CrossEntropy, examples::Descent, examples::Digits, examples::HiddenLayer, examples::Network,
    examples::OutputLayer, examples::TrainsItself;

namespace {

/// What is said of an epoch: on a terminal its progress, too.
class Progress {
 public:
  explicit Progress(std::size_t epoch) : epoch_(epoch) {}

  void step(double share) const {
    if (is_terminal_) std::printf("\repoch %2zu: %3.0f %%", epoch_, 100 * share), std::fflush(stdout);
  }
  void end(double loss) const { std::printf("%sepoch %2zu: loss %.6f\n", is_terminal_ ? "\r" : "", epoch_, loss); }

 private:
  std::size_t epoch_;
  bool is_terminal_ = ::isatty(STDOUT_FILENO) != 0;
};

}  // namespace

int main(int argc, char** argv) try {
  int devices = fanout::host_device_count(), workers = 2;
  std::size_t hidden = 32, batch = 128, epochs = 20, steps = 1'000'000'000;
  double rate = 0.5, momentum = 0, salt = 1;
  std::int64_t shuffle = -1;
  std::string data = "examples/data/digits.csv", mode = "update", losses, trace, save, resume;
  examples::Arguments arguments{"Trains a network of two layers on handwritten digits, then tests it on the last 297."};
  arguments.add("devices", devices, {1, 4096}, "host devices");
  arguments.add("data", data, "file with 64 pixels and a label in each line");
  arguments.add("mode", mode, {"update", "replicas", "stages"},
                "gradients go to one model, or each device trains a replica, or each layer is a stage");
  arguments.add("hidden", hidden, {1, 65536}, "width of the hidden layer");
  arguments.add("batch", batch, {1}, "rows of a step");
  arguments.add("epochs", epochs, {1}, "times through the data");
  arguments.add("steps", steps, {1}, "the most steps of this run");
  arguments.add("rate", rate, {0}, "learning rate");
  arguments.add("momentum", momentum, {0}, "how much of a step goes on into the next");
  arguments.add("salt", salt, {-1e9, 1e9}, "chooses the weights to begin with");
  arguments.add("shuffle", shuffle, {-1}, "seed of the order in which digits are seen; -1 for that of the file");
  arguments.add("workers", workers, {0, 64}, "threads that load batches");
  arguments.add("save", save, "file to which the run is saved after each epoch, and at its end");
  arguments.add("resume", resume, "file from which a run goes on");
  arguments.add("losses", losses, "file to which the loss of every step is written");
  arguments.add("trace", trace, "file to which a timeline of the first epoch is written");
  arguments.parse(argc, argv);

  const Digits digits = examples::read_digits(data);
  Network network = Network::zeros(hidden);
  network.w1 = examples::sine_weights(hidden, Digits::pixel_count, salt);
  network.w2 = examples::sine_weights(Digits::kinds, hidden, salt + 1);
  Descent descent{rate, momentum, Network::zeros(hidden)};

  // [loader]
  fanout::LoaderOptions options{.batch = batch, .workers = workers};
  if (shuffle >= 0) options.shuffle = fanout::Shuffle{.seed = static_cast<std::uint64_t>(shuffle)};
  const fanout::Loader loader{examples::TrainingDigits{&digits}, options};
  fanout::LoaderPosition at = loader.position();
  if (!resume.empty()) {
    fanout::load(resume, fanout::dict("network"_k = std::ref(network), "velocity"_k = std::ref(descent.velocity),
                                      "at"_k = std::ref(at)));
  }
  // [/loader]
  examples::LossLog log(losses);

  // `step(x, y)` takes a step and returns its loss. `now()` returns the network and the velocity.
  const auto train = [&](const auto& step, const auto& now) {
    const auto epoch = [&](const fanout::LoaderPosition& from) {
      const Progress progress(from.epoch);
      double sum = 0, rows = 0;  // of the batches that this run sees
      auto batches = loader.epoch(from);
      for (auto&& [x, y] : batches) {
        const double found = step(x, y);
        log.add(from.epoch, y.size(), found);
        sum += found * static_cast<double>(y.size()), rows += static_cast<double>(y.size());
        progress.step(1 - static_cast<double>(batches.size()) / static_cast<double>(loader.batches()));
        if (--steps == 0) break;
      }
      if (rows > 0) progress.end(sum / rows);
      if (save.empty()) return;
      const auto [weights, velocity] = now();
      fanout::save(save, fanout::dict("network"_k = std::cref(weights), "velocity"_k = std::cref(velocity),
                                      "at"_k = loader.position()));
    };
    for (; at.epoch < epochs && steps != 0; at = loader.position()) {
      if (trace.empty()) {
        epoch(at);
      } else {
        fanout::trace(std::exchange(trace, ""), [&] { epoch(at); });
      }
    }
  };

  const fanout::Options measured{.output = fanout::DeviceId{"host"}, .measure = true};
  std::string report;
  // [modes]
  if (mode == "update") {
    fanout::ParallelModel model{network, fanout::host_devices(devices), measured};
    const auto step = [&](const auto& x, const auto& y) {
      const auto result = model(x, y);
      model.update([&](Network& original) { descent.step(original, result["gradients"_k]); });
      return result["loss"_k][0];
    };
    train(step, [&] { return std::pair<const Network&, const Network&>(model.model(), descent.velocity); });
    network = model.model(), report = to_string(model.report());
  } else if (mode == "stages") {
    fanout::Pipeline net{fanout::stage(HiddenLayer{network.w1, network.b1}, fanout::host_devices(devices), measured),
                         fanout::stage(OutputLayer{network.w2, network.b2}, fanout::host_devices(devices), measured)};
    const auto now = [&]() -> std::pair<const Network&, const Network&> {
      const HiddenLayer& hidden_layer = net.stage<0>().model();
      const OutputLayer& output_layer = net.stage<1>().model();
      network = {hidden_layer.w, hidden_layer.b, output_layer.w, output_layer.b};
      return {network, descent.velocity};
    };
    const auto step = [&](const auto& x, const auto& y) {
      const auto [loss, gradients] = net.train(x, y, CrossEntropy{});
      const auto& [hidden_gradients, output_gradients] = gradients;
      net.stage<0>().update([&, &g = hidden_gradients](HiddenLayer& layer) {
        descent.apply(layer.w, descent.velocity.w1, g.first), descent.apply(layer.b, descent.velocity.b1, g.second);
      });
      net.stage<1>().update([&, &g = output_gradients](OutputLayer& layer) {
        descent.apply(layer.w, descent.velocity.w2, g.first), descent.apply(layer.b, descent.velocity.b2, g.second);
      });
      return loss;
    };
    train(step, now);
    now(), report = to_string(net.stage<0>().report());
  } else {
    TrainsItself own{rate, momentum, {network}, {descent.velocity}};
    fanout::ParallelModel model{std::move(own), fanout::host_devices(devices), measured};
    const auto& [unused_rate, unused_momentum, weights, velocity] = model.model();
    train([&](const auto& x, const auto& y) { return model(x, y)["loss"_k][0]; },
          [&] { return std::pair<const Network&, const Network&>(weights.value, velocity.value); });
    network = weights.value, report = to_string(model.report());
  }
  // [/modes]
  log.close();

  const fanout::ParallelModel trained{std::move(network), fanout::host_devices(devices), measured};
  const auto result = trained(digits.pixels.rows({digits.train_rows(), digits.rows()}),
                              std::span<const int>(digits.labels).subspan(digits.train_rows()));
  const auto& [w1, b1, w2, b2] = trained.model();
  std::printf("accuracy %d of %zu\n", result["correct"_k][0], Digits::test_rows);
  std::printf("sum of W1 %.12f, norm of W2 %.12f\n", std::accumulate(w1.begin(), w1.end(), 0.0),
              examples::norm(w2.values()));
  std::printf("%s", report.c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}

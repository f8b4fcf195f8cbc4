// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/cuda/visible/gpus_on_bus.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

using fanout::cuda::detail::gpus_on_bus;

namespace {

/// A folder of its own, with what Linux's driver shows of its GPUs, for as long as it lives.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("fanout_gpus_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_ / "gpus");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  void add(const std::string& bus_id, const std::string& model, const std::string& uuid, int minor,
           const std::string& excluded = "No") const {
    std::filesystem::create_directory(path_ / "gpus" / bus_id);
    std::ofstream(path_ / "gpus" / bus_id / "information")
        << "Model: \t\t " << model << "\nIRQ:   \t\t 60\nGPU UUID: \t " << uuid << "\nBus Location: \t " << bus_id
        << "\nDevice Minor: \t " << minor << "\nGPU Excluded:\t " << excluded << '\n';
    std::ofstream(path_ / ("nvidia" + std::to_string(minor)));
  }
  void hide(int minor) const { std::filesystem::remove(path_ / ("nvidia" + std::to_string(minor))); }
  auto gpus() const { return gpus_on_bus(path_ / "gpus", path_ / "nvidia"); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("the driver's list of GPUs is read in the order of the bus") {
  const Folder folder;
  folder.add("0000:3b:00.0", "NVIDIA A100", "GPU-bb", 0);
  folder.add("0000:07:00.0", "NVIDIA T4", "GPU-aa", 1);
  folder.add("0000:af:00.0", "NVIDIA A100", "GPU-cc", 2);
  const auto gpus = folder.gpus();
  REQUIRE(gpus.has_value());
  REQUIRE(gpus->size() == 3);
  CHECK((*gpus)[0].uuid == "GPU-aa");
  CHECK((*gpus)[0].name == "NVIDIA T4");
  CHECK((*gpus)[1].uuid == "GPU-bb");
  CHECK((*gpus)[2].uuid == "GPU-cc");
}

TEST_CASE("many GPUs are put in order, in whatever order they are listed") {
  std::vector<int> minors(16);
  std::iota(minors.begin(), minors.end(), 10);
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    const Folder folder;
    for (const int minor : minors) {
      const std::string number = std::to_string(minor);
      folder.add("0000:" + number + ":00.0", "NVIDIA A100", "GPU-" + number, minor);
    }
    const auto gpus = folder.gpus();
    REQUIRE(gpus.has_value());
    REQUIRE(gpus->size() == minors.size());
    for (std::size_t i = 0; i < gpus->size(); ++i) CHECK((*gpus)[i].uuid == "GPU-" + std::to_string(10 + i));
    std::shuffle(minors.begin(), minors.end(), random);
  }
}

TEST_CASE("a GPU that is excluded or cannot be opened is left out") {
  const Folder folder;
  folder.add("0000:01:00.0", "NVIDIA A100", "GPU-aa", 0, "Yes");
  folder.add("0000:02:00.0", "NVIDIA A100", "GPU-bb", 1);
  folder.add("0000:03:00.0", "NVIDIA A100", "GPU-cc", 2);
  folder.hide(1);
  const auto gpus = folder.gpus();
  REQUIRE(gpus.has_value());
  REQUIRE(gpus->size() == 1);
  CHECK((*gpus)[0].uuid == "GPU-cc");
}

TEST_CASE("GPUs without known uuids, and a missing list, give no answer") {
  const Folder folder;
  CHECK(!gpus_on_bus("/nowhere/gpus", "/nowhere/nvidia").has_value());
  folder.add("0000:01:00.0", "NVIDIA A100", "GPU-aa", 0);
  CHECK(folder.gpus().has_value());
  folder.add("0000:02:00.0", "NVIDIA A100", "GPU-\?\?\?\?\?\?\?\?", 1);
  CHECK(!folder.gpus().has_value());
}

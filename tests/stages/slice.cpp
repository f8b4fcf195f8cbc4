// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>
#include <fanout/state.hpp>
#include <support/simulated.hpp>
#include <support/thread_ranks.hpp>

#include "stages/sliced_layers.hpp"

namespace {

using fanout::broadcast;
using fanout::Context;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::Slice;
using fanout_test::Deep;
using fanout_test::elements;
using fanout_test::fractions;
using fanout_test::Matrix;
using fanout_test::on_devices;
using fanout_test::product;
using fanout_test::Rows;
using fanout_test::simulated;
using fanout_test::Wide;

struct Across {
  Slice<Matrix, 0> weight;
  auto forward(Context auto& ctx, Rows x) const { return fanout::sharded(product(x, weight.part(ctx))); }
};

struct Back {
  Slice<Matrix, 1> weight;
  auto forward(Context auto& ctx, Rows mine) const { return fanout::psum(product(mine, weight.part(ctx))); }
};

struct OfPair {
  Slice<Matrix, 0> weight;
  auto forward(Context auto& ctx, const std::pair<Rows, int>& x) const {
    return fanout::concat<1>(product(x.first, weight.part(ctx)));
  }
};

struct ReadsWhole {
  Slice<Matrix, 0> weight;
  double forward() const { return weight.whole()(0, 0); }
};

struct Counts {
  Slice<Matrix, 0> weight;
  int calls = 0;
  auto forward(Context auto& ctx, Rows x) {
    ++calls;
    return fanout::concat<1>(product(x, weight.part(ctx)));
  }
};

}  // namespace

TEST_CASE("each device has its part of a wide layer") {
  const Matrix x = fractions(5, 6);
  const Matrix weight = fractions(7, 6);
  const Matrix wanted = product(x, weight);
  on_devices([&](const auto& devices) {
    const ParallelModel wide{Wide{weight}, devices};
    CHECK(elements(wide(broadcast(x))) == elements(wanted));
    CHECK(elements(wide(fanout::on_all(), broadcast(x))) == elements(wanted));
    CHECK(elements(wide.async(broadcast(x)).get()) == elements(wanted));
    const ParallelModel deep{Deep{weight}, devices};
    const Matrix y = deep(broadcast(x));
    REQUIRE(y.extents() == wanted.extents());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.data()[i] == doctest::Approx(wanted.data()[i]).epsilon(1e-12));
    CHECK(elements(deep(broadcast(x))) == elements(y));
  });
}

TEST_CASE("a device holds no more than its part") {
  // 64 x 64 numbers are 32 KiB, and each device has 20 KiB.
  const Matrix weight = fractions(64, 64);
  const Matrix x = fractions(1, 64);
  const ParallelModel wide{Wide{weight}, simulated(2, {.memory = 20 << 10})};
  CHECK(elements(wide(broadcast(x))) == elements(product(x, weight)));
  const ParallelModel deep{Deep{weight}, simulated(2, {.memory = 20 << 10})};
  CHECK(deep(broadcast(x)).extent(1) == 64);
  struct Whole {
    Matrix weight;
    auto forward(Rows x) const { return product(x, weight); }
  };
  const ParallelModel whole{Whole{weight}, simulated(2, {.memory = 20 << 10})};
  CHECK_THROWS_AS(whole(x), fanout::ReplicaError);
}

TEST_CASE("two layers need one exchange: values stay on the devices in between") {
  const Matrix x = fractions(3, 4);
  const Matrix up = fractions(10, 4);
  const Matrix down = fractions(2, 10);
  const Matrix between = product(x, up);
  const Matrix wanted = product(between, down);
  on_devices([&](const auto& devices) {
    const ParallelModel across{Across{up}, devices};
    const ParallelModel back{Back{down}, devices};
    const Matrix y = back(across(broadcast(x)));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.data()[i] == doctest::Approx(wanted.data()[i]).epsilon(1e-12));
  });
}

TEST_CASE("update() sees the whole, and each device gets its part of the changed one") {
  const Matrix x = fractions(2, 3);
  on_devices([&](const auto& devices) {
    ParallelModel wide{Wide{fractions(5, 3)}, devices};
    wide(broadcast(x));
    wide.update([](Wide& model) {
      REQUIRE(model.weight.whole().extent(0) == 5);
      model.weight.whole()(4, 0) = 9;
    });
    CHECK(elements(wide(broadcast(x))) == elements(product(x, wide.model().weight.whole())));
    wide.update([](Wide& model) { model.weight = fractions(9, 3); });  // other extents
    CHECK(elements(wide(broadcast(x))) == elements(product(x, fractions(9, 3))));
  });
}

TEST_CASE("save() writes the whole of a slice under its plain name, and load() reads it on any number of devices") {
  const std::string path = std::filesystem::temp_directory_path() / "fanout_slice.safetensors";
  const Matrix x = fractions(2, 3);
  const ParallelModel four{Wide{fractions(7, 3)}, simulated(4)};
  fanout::save(path, four);
  ParallelModel three{Wide{Matrix({7, 3})}, simulated(3)};
  three(broadcast(x));
  fanout::load(path, three);
  CHECK(elements(three(broadcast(x))) == elements(four(broadcast(x))));
  struct Plain {
    Matrix weight;
  } plain{Matrix({7, 3})};
  fanout::load(path, plain);
  CHECK(elements(plain.weight) == elements(fractions(7, 3)));
  std::filesystem::remove(path);
}

namespace {

/// The bytes that this process has mapped of a file.
std::size_t mapped_bytes_of(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  std::size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(path)) continue;
    const std::size_t dash = line.find('-');
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

}  // namespace

TEST_CASE("load() maps the whole of a slice, of which each device copies its part, and the file stays as it is") {
  const std::string path = std::filesystem::temp_directory_path() / "fanout_mapped_slice.safetensors";
  const Matrix weight = fractions(300, 40);
  fanout::save(path, Wide{weight});
  const Matrix x = fractions(2, 40);
  {
    ParallelModel wide{Wide{Matrix({300, 40})}, simulated(3)};
    CHECK(mapped_bytes_of(path) == 0);
    fanout::load(path, wide);
    CHECK(mapped_bytes_of(path) >= weight.size() * sizeof(double));
    CHECK(elements(wide(broadcast(x))) == elements(product(x, weight)));
    // What update() writes is the model's alone.
    wide.update([](Wide& model) { model.weight.whole()(299, 0) = 9; });
    Matrix changed = weight;
    changed(299, 0) = 9;
    CHECK(elements(wide(broadcast(x))) == elements(product(x, changed)));
    Wide again{Matrix({300, 40})};
    fanout::load(path, again);
    CHECK(elements(again.weight.whole()) == elements(weight));
    const Wide copy = again;  // in memory of its own
    // A file that replaces this one changes nothing here.
    fanout::save(path, wide);
    CHECK(elements(again.weight.whole()) == elements(weight));
    fanout::load(path, again);
    CHECK(elements(again.weight.whole()) == elements(changed));
    CHECK(elements(copy.weight.whole()) == elements(weight));
  }
  CHECK(mapped_bytes_of(path) == 0);
  std::filesystem::remove(path);
}

TEST_CASE("a slice is loaded also if its numbers lie anywhere in the file, or there are none") {
  const std::string path = std::filesystem::temp_directory_path() / "fanout_odd_slice.safetensors";
  const std::string header = R"({"weight":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]}})";  // 62 bytes
  const double numbers[] = {1.5, -2};
  std::ofstream file(path, std::ios::binary);
  file << static_cast<char>(header.size()) << std::string(7, '\0') << header;
  file.write(reinterpret_cast<const char*>(numbers), sizeof numbers);
  file.close();
  Wide odd{Matrix({2, 1})};
  fanout::load(path, odd);
  CHECK(elements(odd.weight.whole()) == std::vector<double>{1.5, -2});
  Wide none{Matrix({0, 3})};
  fanout::save(path, none);
  fanout::load(path, none);
  CHECK(none.weight.whole().empty());
  std::filesystem::remove(path);
}

TEST_CASE("over ranks, the devices of all ranks have one part each") {
  const Matrix x = fractions(2, 9);
  const Matrix weight = fractions(5, 9);
  const Matrix wanted = product(x, weight);
  fanout_test::on_thread_ranks(2, [&](const fanout_test::ThreadRanks& ranks) {
    const fanout::Options over_ranks{.ranks = &ranks};
    const ParallelModel deep{Deep{weight}, host_devices(2), over_ranks};
    const Matrix y = deep(broadcast(x));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.data()[i] == doctest::Approx(wanted.data()[i]).epsilon(1e-12));
    const ParallelModel wide{Wide{weight}, host_devices(2), over_ranks};
    const Matrix mine = wide(broadcast(x));  // 5 outputs on 4 devices: 2, 1, 1, 1
    const std::size_t first = ranks.rank() == 0 ? 0 : 3;
    REQUIRE(mine.extent(1) == (ranks.rank() == 0 ? 3U : 2U));
    for (std::size_t o = 0; o < mine.extent(1); ++o) CHECK(mine(1, o) == wanted(1, first + o));
  });
}

TEST_CASE("a model with slices refuses arguments that are split by rows") {
  const ParallelModel model{OfPair{fractions(4, 3)}, host_devices(2)};
  CHECK_THROWS_WITH_AS(model(std::pair{fractions(6, 3), 1}), doctest::Contains("split by rows"),
                       fanout::InvalidArgument);
  CHECK_THROWS_WITH_AS(model(std::pair{fractions(6, 3), 1}), doctest::Contains("6 rows"), fanout::InvalidArgument);
  struct Rests {
    auto forward(Rows x) const { return fanout::sharded(Matrix(x)); }
  };
  const ParallelModel rests{Rests{}, host_devices(3)};
  const ParallelModel other{Wide{fractions(4, 3)}, host_devices(2)};
  CHECK_THROWS_WITH_AS(other(rests(fractions(6, 3))), doctest::Contains("sharded"), fanout::InvalidArgument);

  const ParallelModel original{ReadsWhole{fractions(4, 3)}, host_devices(2)};
  CHECK(original()(0) == fractions(1, 1)(0, 0));
  CHECK_THROWS_WITH_AS(ParallelModel(ReadsWhole{fractions(4, 3)}, simulated(2))(),
                       doctest::Contains("which has its part"), fanout::ReplicaError);
}

TEST_CASE("each rank of a replica that changes has its part, too") {
  const Matrix x = fractions(2, 3);
  on_devices([&](const auto& devices) {
    const ParallelModel counts{Counts{fractions(5, 3)}, devices};
    CHECK(elements(counts(broadcast(x))) == elements(product(x, fractions(5, 3))));
    CHECK(elements(counts(broadcast(x))) == elements(product(x, fractions(5, 3))));
    CHECK(counts.replica(0).model().calls == 2);
  });
}

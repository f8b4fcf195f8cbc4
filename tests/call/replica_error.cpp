// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::ReplicaError;
using fanout::RowRange;
using fanout::Tensor;
using fanout::View;
using fanout_test::says;

namespace {

struct Mine : std::logic_error {
  using std::logic_error::logic_error;
  int code = 17;
};

enum class Reason { none, full };

/// Row i does what the i-th number says: nothing, or throws one thing or another.
struct Thrower {
  int forward(View<const int, 1> x) const {
    for (const int what : x) {
      if (what == 1) throw std::runtime_error("one");
      if (what == 2) throw Mine("two");
      if (what == 3) throw 3;
      if (what == 4) throw fanout::ShapeMismatch("four");
      if (what == 5) throw Reason::full;
    }
    return 5;
  }
};

Tensor<int, 1> batch(const std::vector<int>& values) {
  return Tensor<int, 1>(View<const int, 1>(values.data(), values.size()));
}

using ThrowingModel = ParallelModel<Thrower, fanout::DeviceSet<fanout::HostDevice>>;

ReplicaError error_of(const ThrowingModel& model, const std::vector<int>& values) {
  try {
    (void)model(batch(values));
  } catch (const ReplicaError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

}  // namespace

TEST_CASE("one replica that throws is reported with shard, device and rows") {
  ThrowingModel model{Thrower{}, host_devices(3)};
  const ReplicaError error = error_of(model, {0, 0, 0, 1, 0, 0, 0});  // [0, 3) [3, 5) [5, 7)
  REQUIRE(error.failures().size() == 1);
  CHECK(error.failures()[0].shard == 1);
  CHECK(error.failures()[0].device == fanout::DeviceId{.kind = "host", .index = 1});
  CHECK(error.failures()[0].rows == RowRange{3, 5});
  CHECK(says(error.what(), "forward failed on 1 of 3 replicas",
             "Caught std::runtime_error in replica 1 on device host:1", "rows [3, 5)", "one"));
  CHECK(model(batch({0, 0, 0, 0})).size() == 3);
}

TEST_CASE("all failures are reported, in row order, also when every replica throws") {
  ThrowingModel model{Thrower{}, host_devices(3)};
  for (int run = 0; run < 20; ++run) {
    const ReplicaError error = error_of(model, {3, 2, 1});
    REQUIRE(error.failures().size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(error.failures()[i].shard == i);
      CHECK(error.failures()[i].rows == RowRange{i, i + 1});
    }
    CHECK(says(error.what(), "failed on 3 of 3 replicas", "Caught an exception that is no std::exception in replica 0",
               "Mine in replica 1", "two", "std::runtime_error in replica 2", "one"));
  }
  const ReplicaError two = error_of(model, {0, 1, 2});
  REQUIRE(two.failures().size() == 2);
  CHECK(two.failures()[0].shard == 1);
  CHECK(two.failures()[1].shard == 2);
  CHECK(model(batch({0, 0, 0}))[2] == 5);
}

TEST_CASE("an exception is found by its type, exactly as it was thrown") {
  ThrowingModel model{Thrower{}, host_devices(4)};
  const ReplicaError error = error_of(model, {0, 3, 2, 1});
  REQUIRE(error.get_if<Mine>() != nullptr);
  CHECK(error.get_if<Mine>()->code == 17);
  REQUIRE(error.get_if<std::runtime_error>() != nullptr);
  CHECK(std::string(error.get_if<std::runtime_error>()->what()) == "one");
  REQUIRE(error.get_if<int>() != nullptr);
  CHECK(*error.get_if<int>() == 3);
  CHECK(std::string(error.get_if<std::exception>()->what()) == "two");  // the first that is one
  CHECK(error.get_if<fanout::Error>() == nullptr);
  CHECK(error.get_if<long>() == nullptr);
  CHECK(error.get_if<std::logic_error>() == error.get_if<const Mine>());
  const ReplicaError of_enum = error_of(model, {0, 5, 0, 0});
  REQUIRE(of_enum.get_if<Reason>() != nullptr);
  CHECK(*of_enum.get_if<Reason>() == Reason::full);
}

TEST_CASE("rethrow throws the failure with the lowest rows") {
  ThrowingModel model{Thrower{}, host_devices(3)};
  CHECK_THROWS_AS(error_of(model, {0, 3, 1}).rethrow(), int);
  CHECK_THROWS_AS(error_of(model, {2, 3, 1}).rethrow(), Mine);
}

TEST_CASE("with rethrow_single one failure is thrown as itself, and several are not") {
  ThrowingModel model{Thrower{}, host_devices(3), Options{.rethrow_single = true}};
  CHECK_THROWS_AS(model(batch({0, 3, 0})), int);
  CHECK_THROWS_AS(model(batch({0, 0, 2})), Mine);
  CHECK_THROWS_AS(model(batch({0, 1, 2})), ReplicaError);
  CHECK(model(batch({0, 0, 0})).size() == 3);
}

TEST_CASE("an error of the library's own kind that forward throws is a failure of the replica as well") {
  ThrowingModel model{Thrower{}, host_devices(2)};
  CHECK(error_of(model, {0, 4}).get_if<fanout::ShapeMismatch>() != nullptr);
}

TEST_CASE("the text of an error with one replica is in the singular") {
  ThrowingModel model{Thrower{}, host_devices(1)};
  CHECK(says(error_of(model, {1}).what(), "forward failed on 1 of 1 replica\n"));
}

TEST_CASE("an exception from scatter is thrown as itself, also if the shards make their own pieces") {
  ThrowingModel model{Thrower{}, host_devices(2)};
  const auto x = batch({0, 0});
  const View<const int, 1> elsewhere(x.data(), x.extents(), fanout::MemorySpace{{.kind = "toy", .index = 0}});
  CHECK_THROWS_AS(model(elsewhere), fanout::DeviceMismatch);
  CHECK(model(x).size() == 2);
}

TEST_CASE("an exception made by hand has the same text") {
  const ReplicaError error({{.shard = 1,
                             .device = {.kind = "cuda", .index = 3},
                             .rows = {15, 30},
                             .exception = std::make_exception_ptr(std::out_of_range("no such word"))}},
                           2);
  CHECK(std::string(error.what()) ==
        "forward failed on 1 of 2 replicas\n"
        "  Caught std::out_of_range in replica 1 on device cuda:3, rows [15, 30): no such word");
  const fanout::Error& base = error;
  CHECK(base.what() == error.what());

  const ReplicaError outer({{.shard = 0,
                             .device = {.kind = "host", .index = 0},
                             .rows = {0, 30},
                             .exception = std::make_exception_ptr(error)}},
                           2);
  CHECK(std::string(outer.what())
            .ends_with("in replica 0 on device host:0, rows [0, 30): forward failed on 1 of 2 replicas\n"
                       "    Caught std::out_of_range in replica 1 on device cuda:3, rows [15, 30): no such word"));
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/data/load_error.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include <fanout/base/error.hpp>

using fanout::LoadError;

TEST_CASE("a LoadError says which batch failed and why, and holds the original") {
  const LoadError error({.epoch = 3, .batch = 5, .rows = {640, 768}, .sample = 1'234},
                        std::make_exception_ptr(std::out_of_range("no such file")));
  CHECK(std::string(error.what()) ==
        "Caught std::out_of_range in a Loader, epoch 3, batch 5, rows [640, 768) of the order, sample 1234. Original "
        "message: no such file");
  CHECK(error.place().epoch == 3);
  CHECK(error.place().batch == 5);
  CHECK(error.place().rows == fanout::RowRange{640, 768});
  CHECK(error.place().sample == 1'234U);
  REQUIRE(error.get_if<std::logic_error>() != nullptr);
  CHECK(std::string(error.get_if<std::logic_error>()->what()) == "no such file");
  CHECK(error.get_if<std::runtime_error>() == nullptr);
  CHECK_THROWS_AS(error.rethrow(), std::out_of_range);
}

TEST_CASE("a LoadError may hold what is no std::exception, and may know no sample") {
  const LoadError error({.epoch = 0, .batch = 1, .rows = {2, 4}}, std::make_exception_ptr(7));
  CHECK(std::string(error.what()) ==
        "Caught an exception in a Loader, epoch 0, batch 1, rows [2, 4) of the order. Original message: no "
        "std::exception");
  REQUIRE(error.get_if<int>() != nullptr);
  CHECK(*error.get_if<int>() == 7);
}

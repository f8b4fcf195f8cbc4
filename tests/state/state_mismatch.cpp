// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/state/state_mismatch.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

TEST_CASE("a state mismatch says only what there is, in PyTorch's order") {
  using fanout::StateMismatch;
  CHECK(std::string(StateMismatch({.missing = {"a", "b"}, .advice = "Look there."}, "file").what()) ==
        "Error(s) in loading state_dict from file:\n\tMissing key(s) in state_dict: \"a\", \"b\". \n\tLook there.");
  CHECK(std::string(StateMismatch({.unexpected = {"c"}, .mismatched = {"d"}, .texts = {"d differs"}}, "file").what()) ==
        "Error(s) in loading state_dict from file:\n\tUnexpected key(s) in state_dict: \"c\". \n\td differs");
}

TEST_CASE("a state mismatch is an error that keeps its names when it is copied") {
  static_assert(std::is_base_of_v<fanout::Error, fanout::StateMismatch>);
  static_assert(std::is_nothrow_copy_constructible_v<fanout::StateMismatch>);
  const fanout::StateMismatch error({.missing = {"a"}, .unexpected = {"b"}, .mismatched = {"c"}, .texts = {"c"}},
                                    "file");
  const fanout::StateMismatch copy = error;  // NOLINT(performance-unnecessary-copy-initialization)
  CHECK(copy.missing() == std::vector<std::string>{"a"});
  CHECK(copy.unexpected() == std::vector<std::string>{"b"});
  CHECK(copy.mismatched() == std::vector<std::string>{"c"});
}

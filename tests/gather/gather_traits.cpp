// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <fanout/gather/gather_traits.hpp>

#include "support/message_of.hpp"

using fanout_test::message_of;

namespace {
constexpr fanout::DeviceId three_devices[] = {{.kind = "host", .index = 0}, {.kind = "host", .index = 1}};
const fanout::Plan plan{{.rows = {0, 2}, .device = 0}, {.rows = {2, 3}, .device = 1}};
const fanout::GatherTarget place{plan, three_devices, {}};
}  // namespace

TEST_CASE("results that do not match are refused with place, both shards and their values") {
  const fanout::LeafPath output("output");
  const fanout::LeafPath image(output, "image");
  CHECK(message_of<fanout::ShapeMismatch>(
            [&] { fanout::detail::refuse_extents(place, image, 1, "[2]", "[3]", "mend it"); }) ==
        "replicas returned arrays of different extents at output.image: expected [2] as from shard 0 on host:0, rows "
        "[0, 2), found [3] from shard 1 on host:1, rows [2, 3); mend it");
  CHECK(message_of<fanout::StructureMismatch>(
            [&] { fanout::detail::refuse_structure(place, image, 1, "no match", "this", "that"); }) ==
        "no match at output.image: expected this as from shard 0 on host:0, rows [0, 2), found that from shard 1 on "
        "host:1, rows [2, 3); return the same structure from every replica");
}

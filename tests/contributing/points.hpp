// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace contributing {

/// Points of the plane, one array per coordinate. A row is a point.
struct Points {
  std::vector<float> x;
  std::vector<float> y;
};

/// Points that belong to someone else.
struct PointsView {
  std::span<const float> x;
  std::span<const float> y;
};

}  // namespace contributing

template <>
struct fanout::leaf_traits<contributing::Points> {
  using piece_type = contributing::PointsView;

  static std::size_t rows(const contributing::Points& points) { return points.x.size(); }

  static piece_type piece(const contributing::Points& points, std::size_t begin, std::size_t end) {
    const piece_type all{points.x, points.y};
    return {all.x.subspan(begin, end - begin), all.y.subspan(begin, end - begin)};
  }

  static contributing::Points concatenate(const auto& pieces, const LeafPath&) {
    contributing::Points all;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      all.x.insert(all.x.end(), pieces[i].x.begin(), pieces[i].x.end());
      all.y.insert(all.y.end(), pieces[i].y.begin(), pieces[i].y.end());
    }
    return all;
  }
};
static_assert(fanout::ArrayLeaf<contributing::Points>);

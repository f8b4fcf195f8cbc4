// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the library does, once more, in plain loops over lists of leaves: the oracle of the random programs. It knows no
// type of fanout's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sharing.hpp"

namespace random_programs {

/// The number type of a leaf, as far as arithmetic wraps or rounds by it.
enum class Kind : unsigned char { u8, u16, i32, i64, f32, f64, text };

/// An array, a number (no extents) or texts, whatever type it had.
struct Leaf {
  std::vector<std::size_t> extents = {};
  std::vector<double> numbers = {};
  std::vector<std::string> texts = {};
};

/// How a leaf that the shards return is put together.
enum class Rule : unsigned char {
  same,    // structure: alike on all shards
  joined,  // on an axis
  listed,  // one of each shard
  sum,     // and so on: element by element
  mean,
  greatest,
  least,
  fold,        // by half_plus
  first,       // as the first shard that counts returned it
  first_tree,  // the same of a whole tree, which may have another structure on each shard
  stacked,
  kept,  // a whole tree of each shard
};

/// One leaf of a tree, or one fact of its structure.
struct Item {
  static constexpr int not_split = 99;
  static constexpr int range = 98;  // two numbers: the first row and the one past the last

  std::string path;
  Leaf leaf = {};
  int axis = not_split;  // of an input: where it is split; of an output: where it is joined
  Rule rule = Rule::same;
  Kind kind = Kind::f64;
  std::vector<Item> sub = {};  // of first_tree and kept
  double tolerance = 0;
};
using Tree = std::vector<Item>;

std::uint64_t hash_of(std::uint64_t seed, const std::string& text);

/// What one shard is to be handed of the inputs.
Tree cut(const Tree& inputs, const Part& part);

/// What becomes of what the shards returned. `why` is empty, or says why it cannot be put together: "structure" or
/// "shape" and the path.
Tree put_together(const std::vector<const Tree*>& shards, const Parts& parts, std::string& why);

/// Empty if they are alike, or the path and both values of the first leaf that differs.
std::string difference(const Tree& expected, const Tree& found);

/// The number as its type holds it.
double wrapped(Kind kind, double x);
/// What `reduce` is given, as all types can compute it.
double half_plus(Kind kind, double a, double b);

}  // namespace random_programs

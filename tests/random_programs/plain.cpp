// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "plain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace random_programs {

namespace {

bool counts(const Part& part, const Parts& parts) { return part.rows() != 0 || parts.back().end == 0; }

std::size_t size_of(const std::vector<std::size_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>());
}

std::size_t place_of(int axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? static_cast<int>(rank) + axis : axis);
}

/// Element by element, by the place of each in all axes.
Leaf slice(const Leaf& whole, std::size_t axis, std::size_t begin, std::size_t end) {
  Leaf part;
  part.extents = whole.extents;
  part.extents[axis] = end - begin;
  std::size_t inner = 1;
  for (std::size_t a = axis + 1; a < whole.extents.size(); ++a) inner *= whole.extents[a];
  const std::size_t all = size_of(whole.extents);
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t at = i / inner % whole.extents[axis];
    if (at < begin || at >= end) continue;
    if (!whole.texts.empty()) {
      part.texts.push_back(whole.texts[i]);
    } else {
      part.numbers.push_back(whole.numbers[i]);
    }
  }
  return part;
}

/// The extents without one of them.
std::vector<std::size_t> others(std::vector<std::size_t> extents, std::size_t axis) {
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
  return extents;
}

using Leaves = std::vector<const Leaf*>;

Leaf join(const Leaves& leaves, std::size_t axis) {
  Leaf result = *leaves[0];
  result.extents[axis] = 0;
  for (const Leaf* leaf : leaves) result.extents[axis] += leaf->extents[axis];
  result.numbers.clear();
  result.texts.clear();
  const std::size_t outer = size_of({result.extents.begin(), result.extents.begin() + static_cast<long>(axis)});
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Leaf* leaf : leaves) {
      const std::size_t run = size_of(leaf->extents) / outer;
      for (std::size_t i = o * run; i < (o + 1) * run; ++i) {
        if (!leaf->texts.empty()) result.texts.push_back(leaf->texts[i]);
        if (!leaf->numbers.empty()) result.numbers.push_back(leaf->numbers[i]);
      }
    }
  }
  return result;
}

/// One after the other, as one more axis before theirs.
Leaf stack(const Leaves& leaves) {
  Leaf result;
  result.extents = leaves[0]->extents;
  result.extents.insert(result.extents.begin(), leaves.size());
  for (const Leaf* leaf : leaves) {
    result.numbers.insert(result.numbers.end(), leaf->numbers.begin(), leaf->numbers.end());
    result.texts.insert(result.texts.end(), leaf->texts.begin(), leaf->texts.end());
  }
  return result;
}

double combined(const Item& item, const std::vector<double>& x, const Parts& parts) {
  double result = 0;
  bool begun = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (item.rule == Rule::sum) {
      result = wrapped(item.kind, result + x[i]);
      continue;
    }
    if (!counts(parts[i], parts)) continue;
    const double all = static_cast<double>(parts.back().end);
    switch (item.rule) {
      case Rule::mean:
        result += all == 0 ? x[i] / static_cast<double>(x.size()) : x[i] * static_cast<double>(parts[i].rows()) / all;
        break;
      case Rule::greatest:
        if (!begun || std::isnan(x[i]) || x[i] > result) result = std::isnan(result) && begun ? result : x[i];
        break;
      case Rule::least:
        if (!begun || std::isnan(x[i]) || x[i] < result) result = std::isnan(result) && begun ? result : x[i];
        break;
      default:
        result = begun ? half_plus(item.kind, result, x[i]) : x[i];
        break;
    }
    begun = true;
  }
  return result;
}

Leaf combine(const Item& item, const Leaves& leaves, const Parts& parts) {
  Leaf result = *leaves[0];
  for (std::size_t k = 0; k < result.numbers.size(); ++k) {
    std::vector<double> x;
    for (const Leaf* leaf : leaves) x.push_back(leaf->numbers[k]);
    result.numbers[k] = combined(item, x, parts);
  }
  return result;
}

std::string shown(const Item& item) {
  std::string text = item.path + " = [";
  for (std::size_t i = 0; i < item.leaf.extents.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(item.leaf.extents[i]);
  }
  text += "]";
  for (std::size_t i = 0; i < item.leaf.numbers.size() && i < 24; ++i)
    text += ' ' + std::to_string(item.leaf.numbers[i]);
  for (std::size_t i = 0; i < item.leaf.texts.size() && i < 24; ++i) text += " '" + item.leaf.texts[i] + "'";
  return text;
}

bool alike(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x));
  });
}

}  // namespace

std::uint64_t hash_of(std::uint64_t seed, const std::string& text) {
  std::uint64_t hash = seed ^ 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

double wrapped(Kind kind, double x) {
  if (kind == Kind::u8) return static_cast<std::uint8_t>(static_cast<std::int64_t>(x));
  if (kind == Kind::u16) return static_cast<std::uint16_t>(static_cast<std::int64_t>(x));
  if (kind == Kind::f32) return static_cast<float>(x);
  return x;
}

double half_plus(Kind kind, double a, double b) {
  const double half = a / 2;
  return wrapped(kind, (kind < Kind::f32 ? std::trunc(half) : half) + b);
}

Tree cut(const Tree& inputs, const Part& part) {
  Tree tree = inputs;
  for (Item& item : tree) {
    if (item.axis == Item::not_split) continue;
    if (item.axis == Item::range) {
      item.leaf.numbers = {static_cast<double>(part.begin), static_cast<double>(part.end)};
    } else {
      item.leaf = slice(item.leaf, place_of(item.axis, item.leaf.extents.size()), part.begin, part.end);
    }
  }
  return tree;
}

Tree put_together(const std::vector<const Tree*>& shards, const Parts& parts, std::string& why) {
  Tree result;
  std::size_t first = 0;
  while (!counts(parts[first], parts)) ++first;
  for (std::size_t i = 0; i < shards[0]->size(); ++i) {
    const Item& item = (*shards[0])[i];
    Leaves leaves;
    for (const Tree* shard : shards) {
      if (i >= shard->size() || (*shard)[i].path != item.path) {
        why = "structure: " + item.path;
        return {};
      }
      leaves.push_back(&(*shard)[i].leaf);
    }
    const std::size_t axis = item.rule == Rule::joined ? place_of(item.axis, item.leaf.extents.size()) : 0;
    for (const Leaf* leaf : leaves) {
      if (item.rule == Rule::same && (leaf->numbers != leaves[0]->numbers || leaf->texts != leaves[0]->texts)) {
        why = "structure: " + item.path;
        return {};
      }
      if (item.rule == Rule::joined && others(leaf->extents, axis) != others(item.leaf.extents, axis) && why.empty()) {
        why = "shape: " + item.path;
      }
      const bool as_one = (item.rule >= Rule::sum && item.rule <= Rule::fold) || item.rule == Rule::stacked;
      if (as_one && leaf->extents != item.leaf.extents && why.empty()) why = "shape: " + item.path;
    }
    if (!why.empty()) continue;
    Item made{.path = item.path, .leaf = item.leaf};
    switch (item.rule) {
      case Rule::same:
        break;
      case Rule::joined:
        made.leaf = join(leaves, axis);
        break;
      case Rule::listed:
      case Rule::stacked:
        made.leaf = stack(leaves);
        break;
      case Rule::first:
        made.leaf = *leaves[first];
        break;
      case Rule::first_tree:
        for (const Item& of_first : (*shards[first])[i].sub) {
          result.push_back({.path = of_first.path, .leaf = of_first.leaf});
        }
        continue;
      case Rule::kept:
        made.leaf.numbers = {static_cast<double>(shards.size())};
        result.push_back(made);
        for (std::size_t k = 0; k < shards.size(); ++k) {
          for (const Item& own : (*shards[k])[i].sub) {
            const std::string path = item.path + '#' + std::to_string(k) + own.path.substr(item.path.size());
            result.push_back({.path = path, .leaf = own.leaf});
          }
        }
        continue;
      default:
        made.leaf = combine(item, leaves, parts);
        if (item.rule == Rule::mean || item.rule == Rule::fold) made.tolerance = item.kind == Kind::f32 ? 1e-5 : 1e-12;
        break;
    }
    result.push_back(std::move(made));
  }
  for (const Tree* shard : shards) {
    if (shard->size() != shards[0]->size()) why = "structure: at the end";
  }
  return result;
}

std::string difference(const Tree& expected, const Tree& found) {
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i) {
    const Item& a = expected[i];
    const Item& b = found[i];
    if (a.path == b.path && a.leaf.extents == b.leaf.extents && a.leaf.texts == b.leaf.texts &&
        alike(a.leaf.numbers, b.leaf.numbers, a.tolerance)) {
      continue;
    }
    return "expected " + shown(a) + "\n  found    " + shown(b);
  }
  if (expected.size() == found.size()) return "";
  const bool more = found.size() > expected.size();
  return (more ? "not expected " : "missing ") +
         shown((more ? found : expected)[std::min(expected.size(), found.size())]);
}

}  // namespace random_programs

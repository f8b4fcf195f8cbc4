// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the written programs are made of: they draw inputs, note what each shard is handed and returns, and hand both to
// the oracle of plain.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/fanout.hpp>

#include "failing_new.hpp"
#include "plain.hpp"

namespace random_programs {

using Ctx = fanout::ShardContext<fanout::HostDevice>;

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return Kind::u8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return Kind::u16;
  if constexpr (std::is_same_v<T, std::int32_t>) return Kind::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Kind::i64;
  if constexpr (std::is_same_v<T, float>) return Kind::f32;
  if constexpr (std::is_same_v<T, std::string>) return Kind::text;
  return Kind::f64;
}

/// Not a sum of the parts as `+` is, so that the order of the shards shows.
struct HalfPlus {
  template <class T>
  auto operator()(const T& a, const T& b) const {
    return a / 2 + b;
  }
};

/// A row of rows(v), and one of what is no array.
struct Pod {
  int number;
  double weight;
};

// ---- leaves of fanout's types, as plain ones --------------------------------------------------------

inline std::string text_of(const std::string& x) { return x; }
inline std::string text_of(const Pod& x) { return std::to_string(x.number) + '/' + std::to_string(x.weight); }
template <class T>
  requires std::is_arithmetic_v<T> std::string text_of(T x) { return std::to_string(x); }
template <class A, class B>
std::string text_of(const std::pair<A, B>& x) {
  return text_of(x.first) + ':' + text_of(x.second);
}
template <class Range>
  requires requires(const Range& range) { range.begin() != range.end(); }
std::string text_of(const Range& range) {
  std::string text;
  for (const auto& x : range) text += text_of(x) + ',';
  return text;
}

template <class T, std::size_t R>
Leaf leaf_of(const fanout::View<T, R>& view) {
  Leaf leaf;
  for (std::size_t a = 0; a < R; ++a) leaf.extents.push_back(view.extent(a));
  for (std::size_t i = 0; i < view.size(); ++i) leaf.numbers.push_back(static_cast<double>(view.data()[i]));
  return leaf;
}
template <class T, std::size_t R>
Leaf leaf_of(const fanout::Tensor<T, R>& tensor) {
  return leaf_of(fanout::View<const T, R>(tensor));
}
template <class Range>
Leaf leaf_of_range(const Range& range) {
  Leaf leaf{.extents = {range.size()}};
  for (std::size_t i = 0; i < range.size(); ++i) {
    using T = std::remove_cvref_t<decltype(range[i])>;
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<typename Range::value_type, bool>) {
      leaf.numbers.push_back(static_cast<double>(range[i]));
    } else {
      leaf.texts.push_back(text_of(range[i]));
    }
  }
  return leaf;
}
template <class T>
Leaf leaf_of(const std::vector<T>& vector) {
  return leaf_of_range(vector);
}
template <class T>
Leaf leaf_of(std::span<T> span) {
  return leaf_of_range(span);
}
template <class T>
Leaf leaf_of(const fanout::PerShard<T>& many) {
  Leaf leaf{.extents = {many.size()}};
  for (const T& x : many) {
    if constexpr (std::is_arithmetic_v<T>) {
      leaf.numbers.push_back(static_cast<double>(x));
    } else {
      leaf.texts.push_back(text_of(x));
    }
  }
  return leaf;
}
template <class T>
  requires std::is_arithmetic_v<T> Leaf leaf_of(T x) { return {.numbers = {static_cast<double>(x)}}; }
inline Leaf leaf_of(const std::string& x) { return {.texts = {x}}; }
inline Leaf leaf_of(const fanout::RowRange& x) {
  return {.extents = {2}, .numbers = {static_cast<double>(x.begin), static_cast<double>(x.end)}};
}

template <class X>
void note(Tree& tree, const std::string& path, const X& leaf) {
  tree.push_back({.path = path, .leaf = leaf_of(leaf)});
}
/// A fact of a tree's structure: an index, a length.
void note_fact(Tree& tree, const std::string& path, std::size_t fact);
template <class Map>
std::vector<typename Map::key_type> note_keys(Tree& tree, const std::string& path, const Map& map) {
  std::vector<typename Map::key_type> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  tree.push_back({.path = path + '?', .leaf = {.texts = {text_of(keys)}}});
  return keys;
}

// ---- plain leaves, as fanout's types ----------------------------------------------------------------

template <class T, std::size_t R>
fanout::Tensor<T, R> tensor_of(const Leaf& leaf) {
  fanout::Extents<R> extents;
  for (std::size_t a = 0; a < R; ++a) extents.values[a] = leaf.extents[a];
  auto tensor = fanout::Tensor<T, R>::uninitialized(extents, {});
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<T>(leaf.numbers[i]);
  return tensor;
}
template <class T>
std::vector<T> vector_of(const Leaf& leaf) {
  if constexpr (std::is_same_v<T, std::string>) {
    return leaf.texts;
  } else {
    std::vector<T> vector;
    for (const double x : leaf.numbers) vector.push_back(static_cast<T>(x));
    return vector;
  }
}

/// Keeps what others show.
class Kept {
 public:
  template <class T>
  T& keep(T&& value) {
    auto kept = std::make_shared<std::remove_cvref_t<T>>(std::forward<T>(value));
    T& result = *kept;
    values_.push_back(std::move(kept));
    return result;
  }

 private:
  std::vector<std::shared_ptr<void>> values_;
};

// ---- one case ---------------------------------------------------------------------------------------

/// What one shard was handed and has returned.
struct Record {
  int runs = 0;
  std::size_t begin = 0, end = 0, device = 0, size = 0;
  Tree seen, returned;
  Kept kept;
};

class Case;

struct Program {
  void (*run)(Case&);
  bool wide;    // of arrays of two axes or more, so that any of these may be that of the rows
  bool on_all;  // called on all devices if nothing is split
};

/// One call of one program: everything that is drawn, and what came of it.
class Case {
 public:
  /// `devices`: so many; 0: any number up to 17.
  Case(std::uint64_t seed, const Program& program, std::size_t devices = 0);

  std::uint64_t seed;
  std::size_t devices;
  std::size_t rows;
  int axis = 0;
  Sharing sharing;
  // One shard that returns another structure, or other extents, than the others: at this choice of its own.
  std::size_t odd_shard = ~std::size_t{0};
  std::size_t odd_choice = 0;
  bool on_all;
  bool fails_allocations = false;
  bool makes_model = false;  // a new one for each call
  mutable std::vector<Record> records = std::vector<Record>(96);

  fanout::Options options() const;
  /// Calls `call()`, which calls `check(result)` on this, and says whether all is as the oracle says.
  void run(const Tree& inputs, const std::function<void()>& call, const std::function<std::string()>& check_written,
           const std::function<void()>& restore);
  /// Of the result, which was taken apart.
  void check(Tree result);
  /// Empty if nothing was wrong.
  const std::string& wrong() const { return wrong_; }
  std::size_t failed_allocations() const { return failed_allocations_; }

 private:
  void clear();
  void call_once(const std::function<void()>& call, const std::function<std::string()>& check_written);
  void call_failing(const std::function<void()>& call, const std::function<std::string()>& check_written,
                    const std::function<void()>& restore);
  void say(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  std::string check_records() const;

  Tree inputs_;
  Parts parts_;
  std::optional<Tree> result_;
  std::size_t failed_allocations_ = 0;
  std::string wrong_;
};

// ---- inputs -----------------------------------------------------------------------------------------

/// Draws the inputs of a case, and notes them for the oracle.
class Source {
 public:
  explicit Source(Case& own) : own_(own), random_(own.seed), axis_(own.axis) {}

  /// For as long as this lives, arrays are split on another axis, or not at all.
  class Splitting {
   public:
    Splitting(Source& source, int axis) : source_(source), before_(std::exchange(source.axis_, axis)) {}
    Splitting(const Splitting&) = delete;
    Splitting& operator=(const Splitting&) = delete;
    ~Splitting() { source_.axis_ = before_; }

   private:
    Source& source_;
    int before_;
  };

  template <class T, std::size_t R>
  fanout::Tensor<T, R> tensor(const std::string& path) {
    return tensor_of<T, R>(draw(path, R, kind_of<T>(), axis_));
  }
  template <class T, std::size_t R>
  fanout::View<const T, R> view(const std::string& path) {
    return kept_.keep(tensor<T, R>(path));
  }
  template <class T>
  std::vector<T> vector(const std::string& path) {
    return vector_of<T>(draw(path, 1, kind_of<T>(), axis_ == Item::not_split ? axis_ : 0));
  }
  template <class T>
  std::span<const T> span(const std::string& path) {
    return kept_.keep(vector<T>(path));
  }
  template <class T>
  T one(const std::string& path) {
    return vector_of<T>(draw(path, 0, kind_of<T>(), Item::not_split)).at(0);
  }

  /// Elements that are rows as they are, or a list.
  template <class T>
  std::vector<T> elements(const std::string& path, bool split) {
    std::vector<T> made;
    Item item{.path = path, .axis = split ? 0 : Item::not_split};
    for (std::size_t i = split ? own_.rows : random_.below(5); i > 0; --i) {
      made.push_back(element(static_cast<T*>(nullptr)));
      if constexpr (std::is_arithmetic_v<T>) {
        item.leaf.numbers.push_back(static_cast<double>(made.back()));
      } else {
        item.leaf.texts.push_back(text_of(made.back()));
      }
    }
    item.leaf.extents = {made.size()};
    items.push_back(std::move(item));
    return made;
  }
  fanout::Range range(const std::string& path) {
    items.push_back({.path = path, .leaf = {.extents = {2}, .numbers = {0, 0}}, .axis = Item::range});
    return fanout::Range(own_.rows);
  }

  std::size_t choose(const std::string& path, std::size_t end);
  template <class Key>
  std::vector<Key> keys(const std::string& path) {
    std::map<Key, int> keys;
    for (std::size_t i = random_.below(4); i > 0; --i) {
      if constexpr (std::is_same_v<Key, int>) {
        keys[static_cast<int>(random_.below(100)) - 50];
      } else {
        keys["key" + std::to_string(random_.below(100))];
      }
    }
    return note_keys(items, path, keys);
  }

  template <class T>
  T& keep(T&& value) {
    return kept_.keep(std::forward<T>(value));
  }
  /// The same, of an array that was drawn last and that every shard will add one to.
  template <class T>
  T& keep_written(T&& value) {
    T& kept = kept_.keep(std::forward<T>(value));
    Item expected = items.back();
    const T before = kept;
    for (double& x : expected.leaf.numbers) x += 1;
    written_.push_back([&kept, expected] {
      Tree found;
      note(found, expected.path, kept);
      return difference({expected}, found);
    });
    restored_.push_back([&kept, before] { std::copy(before.begin(), before.end(), kept.begin()); });
    return kept;
  }

  void run(const std::function<void()>& call);

  Tree items;

 private:
  const Leaf& draw(const std::string& path, std::size_t rank, Kind kind, int axis);

  std::string element(std::string*) { return std::string(random_.below(30), 'y') + std::to_string(random_.below(100)); }
  Pod element(Pod*) { return {static_cast<int>(random_.below(100)), static_cast<double>(random_.below(100))}; }
  template <class T>
    requires std::is_arithmetic_v<T> T element(T*) { return static_cast<T>(random_.below(250)); }
  template <class A, class B>
  std::pair<A, B> element(std::pair<A, B>*) {
    A a = element(static_cast<A*>(nullptr));
    return {std::move(a), element(static_cast<B*>(nullptr))};
  }
  template <class T>
  std::vector<T> element(std::vector<T>*) {
    std::vector<T> made;
    for (std::size_t i = random_.below(4); i > 0; --i) made.push_back(element(static_cast<T*>(nullptr)));
    return made;
  }

  Case& own_;
  Random random_;
  int axis_;
  Kept kept_;
  std::vector<std::function<std::string()>> written_;
  std::vector<std::function<void()>> restored_;
};

/// What a shard does to what it may write.
template <class X>
void add_one(const X& x) {
  auto* const data = x.data();
  for (std::size_t i = 0; i < x.size(); ++i) data[i] = static_cast<std::remove_cvref_t<decltype(data[i])>>(data[i] + 1);
}

// ---- outputs ----------------------------------------------------------------------------------------

/// Draws what one shard returns, and notes it for the oracle.
class Shard {
 public:
  Shard(const Case& own, Ctx& ctx);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  Tree& seen() { return record_.seen; }

  /// For as long as this lives, what is drawn stands under another rule.
  class Under {
   public:
    Under(Shard& shard, Rule rule, const std::string& path, int axis = Item::not_split)
        : shard_(shard), rule_(std::exchange(shard.rule_, rule)), axis_(std::exchange(shard.axis_, axis)), path_(path) {
      if (is_tree()) sub_.swap(shard.record_.returned);
      if (is_tree()) ++shard.free_;
    }
    Under(const Under&) = delete;
    Under& operator=(const Under&) = delete;
    ~Under() {
      if (is_tree()) {
        --shard_.free_;
        sub_.swap(shard_.record_.returned);
        shard_.record_.returned.push_back({.path = path_, .rule = shard_.rule_, .sub = std::move(sub_)});
      }
      shard_.rule_ = rule_;
      shard_.axis_ = axis_;
    }

   private:
    bool is_tree() const { return shard_.rule_ == Rule::first_tree || shard_.rule_ == Rule::kept; }

    Shard& shard_;
    Rule rule_;
    int axis_;
    std::string path_;
    Tree sub_;
  };

  template <class T, std::size_t R>
  fanout::Tensor<T, R> tensor(const std::string& path) {
    return tensor_of<T, R>(draw(path, R, kind_of<T>(), false));
  }
  template <class T, std::size_t R>
  fanout::View<T, R> view(const std::string& path) {
    return record_.kept.keep(tensor<std::remove_const_t<T>, R>(path));
  }
  template <class T, std::size_t R>
  fanout::Output<T, R> window(const std::string& path) {
    const Leaf& leaf = draw(path, R, kind_of<T>(), true);
    auto window = [&]<std::size_t... I>(std::index_sequence<I...>) {
      const MayFail may_fail;
      return fanout::output<T>(ctx_, leaf.extents[I + 1]...);
    }
    (std::make_index_sequence<R - 1>());
    for (std::size_t i = 0; i < window.size(); ++i) window.data()[i] = static_cast<T>(leaf.numbers[i]);
    return window;
  }
  template <class T>
  std::vector<T> vector(const std::string& path) {
    return vector_of<T>(draw(path, 1, kind_of<T>(), false));
  }
  template <class T>
  std::span<const T> span(const std::string& path) {
    return record_.kept.keep(vector<T>(path));
  }
  /// One number or text.
  template <class T>
  T one(const std::string& path) {
    const Rule rule = rule_ == Rule::joined || rule_ == Rule::stacked ? Rule::listed : rule_;
    const Rule before = std::exchange(rule_, rule);
    T made = vector_of<T>(draw(path, 0, kind_of<T>(), false)).at(0);
    rule_ = before;
    return made;
  }
  /// One value of each shard, of a type that the oracle need not know.
  template <class T>
  std::vector<T> listed(const std::string& path) {
    const Random random(hash(path, true));
    std::vector<T> made(Random(random).below(4), static_cast<T>(Random(random).below(100)));
    record_.returned.push_back({.path = path, .leaf = {.texts = {text_of(made)}}, .rule = Rule::listed});
    return made;
  }

  std::size_t choose(const std::string& path, std::size_t end);
  template <class Key>
  std::vector<Key> keys(const std::string& path) {
    std::map<Key, int> keys;
    Random random(hash(path, free_ != 0));
    for (std::size_t i = random.below(4) + (is_odd() ? 1 : 0); i > 0; --i) {
      if constexpr (std::is_same_v<Key, int>) {
        keys[static_cast<int>(random.below(100)) - 50];
      } else {
        keys["key" + std::to_string(random.below(100))];
      }
    }
    return note_keys(record_.returned, path, keys);
  }

 private:
  std::uint64_t hash(const std::string& path, bool each_shard) const {
    return hash_of(own_.seed + (each_shard ? 1000 + ctx_.rank() : 0), path);
  }
  bool is_odd() { return free_ == 0 && ctx_.rank() == own_.odd_shard && choices_++ == own_.odd_choice; }

  const Leaf& draw(const std::string& path, std::size_t rank, Kind kind, bool window);

  const Case& own_;
  Ctx& ctx_;
  Record& record_;
  Rule rule_;
  int axis_;
  std::size_t free_ = 0;  // how many trees around this may have another structure on each shard
  std::size_t choices_ = 0;
};

}  // namespace random_programs

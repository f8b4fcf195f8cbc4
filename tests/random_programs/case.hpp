// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the written programs are made of: they draw inputs, note what each shard is handed and returns, and hand both to
// the oracle of plain.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
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

// ---- rows, of types that nothing else has -----------------------------------------------------------

/// Copied as bytes.
struct Pod {
  int number;
  double weight;

  auto members() const { return std::tie(number, weight); }
};

/// Has rows of its own type.
struct Branch {
  int number;
  std::vector<Branch> branches;

  auto members() const { return std::tie(number, branches); }
};

/// Cannot be looked into, nor made from nothing.
class Sealed {
 public:
  explicit Sealed(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// ---- leaves of fanout's types, as plain ones --------------------------------------------------------

template <class X>
std::string text_of(const X& x);

template <class T, std::size_t R>
Leaf leaf_of(const fanout::View<T, R>& view) {
  Leaf leaf;
  for (std::size_t a = 0; a < R; ++a) leaf.extents.push_back(view.extent(a));
  for (std::size_t i = 0; i < view.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      leaf.numbers.push_back(static_cast<double>(view.data()[i]));
    } else {
      leaf.texts.push_back(text_of(view.data()[i]));
    }
  }
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
Leaf leaf_of_one(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) return {.numbers = {static_cast<double>(x)}};
  return {.texts = {text_of(x)}};
}
template <class T>
  requires std::is_arithmetic_v<T> Leaf leaf_of(T x) { return leaf_of_one(x); }
inline Leaf leaf_of(const std::string& x) { return leaf_of_one(x); }
inline Leaf leaf_of(const fanout::RowRange& x) {
  return {.extents = {2}, .numbers = {static_cast<double>(x.first), static_cast<double>(x.last)}};
}

template <class... X>
std::string text_of_all(const X&... x) {
  std::string text = "(";
  ((text += text_of(x) + ':'), ...);
  return text + ')';
}

/// What a row shows, whatever its type is.
template <class X>
std::string text_of(const X& x) {
  if constexpr (std::is_arithmetic_v<X>) {
    return std::to_string(x);
  } else if constexpr (std::is_same_v<X, std::string>) {
    return x;
  } else if constexpr (std::is_same_v<X, Sealed>) {
    return x.text();
  } else if constexpr (requires { x.members(); }) {
    return std::apply([](const auto&... member) { return text_of_all(member...); }, x.members());
  } else if constexpr (requires { std::tuple_size<X>::value; }) {
    return std::apply([](const auto&... element) { return text_of_all(element...); }, x);
  } else if constexpr (requires { x.extents(); }) {
    const Leaf leaf = leaf_of(fanout::View<const typename X::value_type, X::rank>(x));
    return text_of_all(leaf.extents, leaf.numbers);
  } else if constexpr (requires { x.has_value(); }) {
    return x.has_value() ? "one " + text_of(*x) : "none";
  } else if constexpr (requires { x.valueless_by_exception(); }) {
    return std::to_string(x.index()) + std::visit([](const auto& held) { return text_of_all(held); }, x);
  } else if constexpr (requires { typename X::mapped_type; }) {
    std::map<std::string, std::string> sorted;
    for (const auto& [key, value] : x) sorted[text_of(key)] = text_of(value);
    std::string text;
    for (const auto& entry : sorted) text += text_of(entry);
    return text;
  } else {
    std::string text = std::to_string(x.size()) + '[';
    for (const auto& element : x) text += text_of(element) + ',';
    return text;
  }
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

/// Draws values of any type that rows may have.
class Rows {
 public:
  Rows(Random& random, Kept& kept, Ctx* ctx = nullptr) : random_(random), kept_(kept), ctx_(ctx) {}

  template <class T>
  T draw() {
    return draw(std::type_identity<T>());
  }

 private:
  template <class T>
  T draw(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(random_.below(250));
    } else {
      return T::drawn(*this);
    }
  }
  std::string draw(std::type_identity<std::string>) {
    return std::string(random_.below(30), 'y') + std::to_string(random_.below(100));
  }
  Pod draw(std::type_identity<Pod>) { return {draw<int>(), draw<double>()}; }
  Sealed draw(std::type_identity<Sealed>) { return Sealed(draw<std::string>()); }
  Branch draw(std::type_identity<Branch>) {
    return {draw<int>(), some<std::vector<Branch>>(random_.below(4) == 0 ? 2 : 0)};
  }
  template <class A, class B>
  std::pair<A, B> draw(std::type_identity<std::pair<A, B>>) {
    return {draw<A>(), draw<B>()};
  }
  template <class... T>
  std::tuple<T...> draw(std::type_identity<std::tuple<T...>>) {
    return std::tuple<T...>{draw<T>()...};
  }
  template <class T, std::size_t N>
  std::array<T, N> draw(std::type_identity<std::array<T, N>>) {
    return [this]<std::size_t... I>(std::index_sequence<I...>) { return std::array<T, N>{(void(I), draw<T>())...}; }
    (std::make_index_sequence<N>());
  }
  template <class T>
  std::optional<T> draw(std::type_identity<std::optional<T>>) {
    return random_.below(3) == 0 ? std::optional<T>() : std::optional<T>(draw<T>());
  }
  template <class... T>
  std::variant<T...> draw(std::type_identity<std::variant<T...>>) {
    return alternative<std::variant<T...>>(random_.below(sizeof...(T)));
  }
  template <class T>
  std::vector<T> draw(std::type_identity<std::vector<T>>) {
    return some<std::vector<T>>(random_.below(4));
  }
  template <class T>
  std::deque<T> draw(std::type_identity<std::deque<T>>) {
    return some<std::deque<T>>(random_.below(3));
  }
  template <class K, class T>
  std::map<K, T> draw(std::type_identity<std::map<K, T>>) {
    return some_entries<std::map<K, T>>();
  }
  template <class K, class T>
  std::unordered_map<K, T> draw(std::type_identity<std::unordered_map<K, T>>) {
    return some_entries<std::unordered_map<K, T>>();
  }
  template <class T, std::size_t R>
  fanout::Tensor<T, R> draw(std::type_identity<fanout::Tensor<T, R>>) {
    fanout::Extents<R> extents;
    for (std::size_t a = 0; a < R; ++a) extents.values[a] = random_.below(3);
    auto tensor = fanout::Tensor<T, R>::uninitialized(extents, {});
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor.data()[i] = draw<T>();
    return tensor;
  }
  template <class T, std::size_t R>
  fanout::View<const T, R> draw(std::type_identity<fanout::View<const T, R>>) {
    return kept_.keep(draw<fanout::Tensor<T, R>>());
  }
  template <class T>
  std::span<const T> draw(std::type_identity<std::span<const T>>) {
    return kept_.keep(draw<std::vector<T>>());
  }
  template <class T>
  fanout::Output<T, 2> draw(std::type_identity<fanout::Output<T, 2>>) {
    auto window = [this] {
      const std::size_t columns = random_.below(3);
      const MayFail may_fail;
      return fanout::output<T>(*ctx_, columns);
    }();
    for (std::size_t i = 0; i < window.size(); ++i) window.data()[i] = draw<T>();
    return window;
  }

  template <class Range>
  Range some(std::size_t size) {
    Range made;
    for (; size > 0; --size) made.push_back(draw<typename Range::value_type>());
    return made;
  }
  template <class Map>
  Map some_entries() {
    Map made;
    for (std::size_t i = random_.below(3); i > 0; --i) {
      auto key = draw<typename Map::key_type>();
      made.emplace(std::move(key), draw<typename Map::mapped_type>());
    }
    return made;
  }
  // A text is so short that its copy allocates nothing. clang without optimisation jumps anywhere if the copy of an
  // alternative of libstdc++'s variant throws, also in programs that do nothing else.
  template <class V, std::size_t I = 0>
  V alternative(std::size_t index) {
    if constexpr (I + 1 < std::variant_size_v<V>) {
      if (index != I) return alternative<V, I + 1>(index);
    }
    auto made = draw<std::variant_alternative_t<I, V>>();
    if constexpr (std::is_same_v<decltype(made), std::string>) made.resize(made.size() < 8 ? made.size() : 8);
    return V(std::in_place_index<I>, std::move(made));
  }

  Random& random_;
  Kept& kept_;
  Ctx* ctx_;
};

/// Elements that the oracle draws. It knows any others as texts.
template <class T>
concept Plain = (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)&&!std::is_same_v<T, bool>;

// ---- one case ---------------------------------------------------------------------------------------

/// What one shard was handed and has returned.
struct Record {
  int runs = 0;
  std::size_t begin = 0, end = 0, device = 0, size = 0;
  std::uint32_t random = 0;  // the first number of the last row
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
    if constexpr (Plain<T>) {
      return vector_of<T>(draw(path, 1, kind_of<T>(), axis_ == Item::not_split ? axis_ : 0));
    } else {
      return elements<T>(path, axis_ != Item::not_split);
    }
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
    Rows rows(random_, kept_);
    for (std::size_t i = split ? own_.rows : random_.below(5); i > 0; --i) made.push_back(rows.draw<T>());
    items.push_back({.path = path, .leaf = leaf_of(made), .axis = split ? 0 : Item::not_split});
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
    if constexpr (Plain<T>) {
      return vector_of<T>(draw(path, 1, kind_of<T>(), false));
    } else {
      std::vector<T> made;
      const std::size_t size = draw(path, 1, Kind::text, false).extents[0];
      Random random(hash(path, true));
      Rows rows(random, record_.kept, &ctx_);
      while (made.size() < size) made.push_back(rows.draw<T>());
      record_.returned.back().leaf = leaf_of(made);
      return made;
    }
  }
  /// Two rows.
  template <class T>
  std::array<T, 2> array(const std::string& path) {
    Random random(hash(path, true));
    auto made = Rows(random, record_.kept, &ctx_).draw<std::array<T, 2>>();
    record_.returned.push_back({.path = path, .leaf = leaf_of_range(made), .axis = 0, .rule = rule_});
    return made;
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
  /// One value of each shard.
  template <class T>
  T listed(const std::string& path) {
    Random random(hash(path, true));
    T made = Rows(random, record_.kept).draw<T>();
    record_.returned.push_back({.path = path, .leaf = leaf_of_one(made), .rule = Rule::listed});
    return made;
  }
  template <class T>
  const T& keep(T&& value) {
    return record_.kept.keep(std::forward<T>(value));
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

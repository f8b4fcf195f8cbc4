// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fanout/array/strided_view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/fwd.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/model/model_fields.hpp>
#include <fanout/model/original.hpp>
#include <fanout/model/slice_place.hpp>
#include <fanout/state/dtype.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// Which values of a tree are its state, and what their names are. A name is the way to the value, joined by dots:
// `layers.0.weight`. A member, a key of a dict or a key of a map is a step; so is the position in a tuple, an array or
// a vector. Optionals, variants, references and models add no step.

/// The name of a tree that is a single array, number or text.
inline constexpr std::string_view single_name = "value";

template <class X>
inline constexpr bool is_parallel_model = false;
template <class M, class Source>
inline constexpr bool is_parallel_model<ParallelModel<M, Source>> = true;

/// A `std::reference_wrapper`, as in `dict("model"_k = std::ref(model))`.
template <class X>
concept RefersToTree = requires(const X& reference) {
  typename X::type;
  { reference.get() } -> std::same_as<typename X::type&>;
  requires std::convertible_to<const X&, typename X::type&>;
};

/// Appends a step to a name for as long as this lives.
class NameStep {
 public:
  explicit NameStep(std::string& name) noexcept : name_(name), size_(name.size()) {}
  NameStep(const NameStep&) = delete;
  NameStep& operator=(const NameStep&) = delete;
  ~NameStep() { name_.resize(size_); }

  FANOUT_INLINE void add(std::string_view step) const;

  template <class X, std::size_t I>
  void add_place(const FixedPlace<X, I>&) const {
    using Name = typename FixedChildren<X>::template key<I>;
    if constexpr (std::is_void_v<Name>) {
      add(std::to_string(I));
    } else {
      add(Name::name());
    }
  }
  template <class T, class Key>
  void add_place(const MapPlace<T, Key>& place) const {
    if constexpr (requires { std::string_view(place.key); }) {
      add(std::string_view(place.key));
    } else {
      static_assert(std::is_arithmetic_v<Key>,
                    "fanout: the keys of a map that is saved or loaded are texts or numbers, since they become parts "
                    "of names");
      if constexpr (std::is_integral_v<Key>) {
        add(std::to_string(place.key));
      } else if constexpr (std::is_floating_point_v<Key>) {
        add_number(place.key);
      }
    }
  }
  template <class T>
  void add_place(const RowPlace<T>& place) const {
    add(std::to_string(place.i));
  }
  template <class T>
  void add_place(const OptionalPlace<T>&) const {}
  template <class X, std::size_t I>
  void add_place(const VariantPlace<X, I>&) const {}

 private:
  /// Adds the shortest text that reads back the same. 0 and -0 are one key.
  template <class T>
  void add_number(T x) const {
    if (x != x) {
      throw InvalidArgument(explain({.what = "a value under the key NaN cannot be saved or loaded",
                                     .where = name_.empty() ? std::string(single_name) : name_,
                                     .expected = "keys that are equal to themselves",
                                     .found = "NaN"}));
    }
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, x == 0 ? T(0) : x).ptr;
    add({text, static_cast<std::size_t>(end - text)});
  }

  std::string& name_;
  std::size_t size_;
};

template <class Byte, class T>
Byte* state_bytes(T* data) noexcept {
  static_assert(std::is_const_v<Byte> || !std::is_const_v<T>,
                "fanout: load() writes into the tree, and a part of it is const; pass the object itself, or "
                "std::ref(object) in a dict, and no views that only read");
  if constexpr (std::is_const_v<Byte>) {
    return reinterpret_cast<const std::byte*>(data);
  } else {
    return reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(data));
  }
}

/// An array that can be one tensor of a file: a Tensor, a View, a vector or a span of numbers, and strided views.
template <class X>
concept StateArray = ShapedArray<X> || ElementRange<X> || requires(X& x) {
  x.strides();
  x.extents();
  x.space();
};

/// `std::array` and C arrays of numbers.
template <class X>
concept FixedNumbers = (child_kind<X> == ChildKind::array || std::is_array_v<X>)&&requires(X& x) {
  requires HasDtype<std::remove_cvref_t<decltype(x[0])>>;
};

template <class Byte, StateArray X>
StateLeaf<Byte> array_leaf(X& array, std::string_view name) {
  using T = std::remove_pointer_t<decltype(array.data())>;
  using Element = std::remove_const_t<T>;
  StateLeaf<Byte> leaf{
      .name = name, .dtype = dtype_of<Element>(), .shape = {}, .data = state_bytes<Byte>(array.data())};
  if constexpr (requires { array.extents(); }) {
    for (const std::size_t extent : array.extents().values) leaf.shape.push_back(extent);
    leaf.space = array.space();
  } else {
    leaf.shape.push_back(array.size());
  }
  [[maybe_unused]] constexpr std::size_t parts = saved_as_pair<Element> ? 2 : 1;
  if constexpr (requires { array.strides(); }) {
    for (const std::size_t stride : array.strides().values) leaf.strides.push_back(stride * parts);
    if (parts == 2) leaf.strides.push_back(1);
  }
  if (parts == 2) leaf.shape.push_back(2);
  return leaf;
}

/// See StateLeaf::adopt.
template <class X>
void adopt_elements(void* tensor, std::byte* data, ReleaseBytes* release) {
  using T = typename X::value_type;
  auto& to = *static_cast<X*>(tensor);
  const std::size_t bytes = to.size() * sizeof(T);
  const auto deleter = [release, bytes](T* elements) { release(reinterpret_cast<std::byte*>(elements), bytes); };
  const auto adopted = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return X::adopt(static_cast<T*>(static_cast<void*>(data)), deleter, to.extent(I)...);
  };
  to = adopted(std::make_index_sequence<X::rank>());
}

template <class X>
inline constexpr bool can_be_saved = false;

/// A const member of a struct says how an object is made, and cannot be loaded. It is no state.
template <class Node, class Place>
inline constexpr bool is_const_member = std::is_const_v<typename Place::type>&& StructNode<Node>;

/// Calls `f(leaf)` with a StateLeaf for each array, number and text of a tree or model, in its order. `name` is that of
/// the tree. Byte is `std::byte` if the leaves are written.
template <class Byte, class X, class F>
void visit_state(X& node, std::string& name, const F& f) {
  using Node = std::remove_const_t<X>;
  [[maybe_unused]] const auto emit = [&](StateLeaf<Byte> leaf) {
    leaf.name = name.empty() ? single_name : std::string_view(name);
    f(std::as_const(leaf));
  };
  if constexpr (is_no_model_value<Node>) {
  } else if constexpr (is_parallel_model<Node>) {
    static_assert(HasOriginal<typename Node::model_type>,
                  "fanout: a model that a factory makes on each device has no original to save or load; "
                  "replica(i).model() is the one on the i-th device");
    static_assert(std::is_const_v<Byte> || !std::is_const_v<X>,
                  "fanout: load() updates the model that it writes into, and this ParallelModel is const");
    if constexpr (!HasOriginal<typename Node::model_type> || (!std::is_const_v<Byte> && std::is_const_v<X>)) {
    } else if constexpr (std::is_const_v<Byte>) {
      visit_state<Byte>(node.model(), name, f);
    } else {
      node.update([&](auto& original) { visit_state<Byte>(original, name, f); });
    }
  } else if constexpr (RefersToTree<Node>) {
    visit_state<Byte>(node.get(), name, f);
  } else if constexpr (is_reduced<Node>) {
    visit_state<Byte>(node.value, name, f);
  } else if constexpr (is_slice<Node>) {
    auto& whole = node.whole();
    if constexpr (std::is_const_v<Byte>) {
      visit_state<Byte>(whole, name, f);
    } else {
      visit_state<Byte>(whole, name, [&](StateLeaf<Byte> leaf) {
        leaf.adopt = &adopt_elements<std::remove_cvref_t<decltype(whole)>>;
        leaf.tensor = &whole;
        f(std::as_const(leaf));
      });
    }
  } else if constexpr (StateArray<X>) {
    using Element = std::remove_cv_t<std::remove_pointer_t<decltype(node.data())>>;
    if constexpr (HasDtype<Element>) {
      emit(array_leaf<Byte>(node, name));
    } else if constexpr (child_kind<Node> != ChildKind::none) {
      visit_children<WithPlaces>(node, LeafPath(""), [&](auto& child, const LeafPath&, const auto& place) {
        const NameStep step(name);
        step.add_place(place);
        visit_state<Byte>(child, name, f);
      });
    } else {
      static_assert(HasDtype<Element>,
                    "fanout: save() and load() take arrays of numbers, and this array's elements are none (this "
                    "diagnostic shows their type)");
    }
  } else if constexpr (ForeignMatrix<Node>) {
    static_assert(can_be_saved<X> || !std::is_const_v<Byte>,  // load() comes here with both kinds of bytes
                  "fanout: save() and load() take no matrices of other libraries, since they do not know the order of "
                  "the elements (this diagnostic shows the type); as_view(x) shows one as a View");
  } else if constexpr (HasDtype<Node>) {
    StateLeaf<Byte> leaf{.name = name, .dtype = dtype_of<Node>(), .shape = {}, .data = state_bytes<Byte>(&node)};
    if constexpr (saved_as_pair<Node>) leaf.shape.push_back(2);
    emit(std::move(leaf));
  } else if constexpr (StringNode<Node>) {
    const std::string_view letters = node;
    StateLeaf<Byte> leaf{.name = name, .shape = {letters.size()}};
    leaf.is_text = true;
    if constexpr (std::is_const_v<Byte>) {
      leaf.data = reinterpret_cast<const std::byte*>(letters.data());
    } else {
      static_assert(
          requires { node.assign(letters); },
          "fanout: load() writes into the tree, and a part of it is a text that only reads; use std::string");
      if constexpr (requires { node.assign(letters); }) {
        leaf.assign = [](void* text, std::string_view read) { static_cast<Node*>(text)->assign(read); };
        leaf.text = &node;
      }
    }
    emit(std::move(leaf));
  } else if constexpr (FixedNumbers<Node>) {
    using Element = std::remove_cvref_t<decltype(node[0])>;
    StateLeaf<Byte> leaf{.name = name,
                         .dtype = dtype_of<Element>(),
                         .shape = {std::size(node)},
                         .data = state_bytes<Byte>(std::data(node))};
    if constexpr (saved_as_pair<Element>) leaf.shape.push_back(2);
    emit(std::move(leaf));
  } else if constexpr (std::is_array_v<Node>) {
    for (std::size_t i = 0; i < std::extent_v<Node>; ++i) {
      const NameStep step(name);
      step.add(std::to_string(i));
      visit_state<Byte>(node[i], name, f);
    }
  } else if constexpr (child_kind<Node> != ChildKind::none) {
    visit_children<WithPlaces>(node, LeafPath(""), [&]<class Place>(auto& child, const LeafPath&, const Place& place) {
      if constexpr (!is_const_member<Node, Place>) {
        const NameStep step(name);
        step.add_place(place);
        visit_state<Byte>(child, name, f);
      }
    });
  } else {
    static_assert(can_be_saved<X>,
                  "fanout: save() and load() take arrays, numbers, texts, and trees and models of these (this "
                  "diagnostic shows what they cannot take); a class with private members, base classes or constructors "
                  "lists its fields (tree/fields.hpp)");
  }
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/visit_state.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/state/dtype.hpp>
#include <fanout/state/format_error.hpp>
#include <fanout/state/load.hpp>
#include <fanout/state/state_file.hpp>
#include <fanout/state/state_header.hpp>
#include <fanout/state/state_mismatch.hpp>
#include <fanout/state/strip_prefix.hpp>
#include <fanout/state/visit_state.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A vector or a span of numbers.
template <class X>
concept NumberRange = ElementRange<X> && requires(X& range) {
  requires HasDtype<std::remove_cvref_t<decltype(*range.data())>>;
};

/// A key that keeps its text when the one that it was made from is gone, unlike a view, whose front can be left out.
template <class Key>
concept OwnsText = std::constructible_from<Key, std::string_view> && !requires(Key & key) {
  key.remove_prefix(1U);
};

/// Gives a tree the structure of which a file tells: the extents of its tensors, the sizes of its vectors, the keys of
/// its maps. Leaves what it cannot tell, for load() to complain about.
class StateStructure {
 public:
  explicit StateStructure(const StateFile& file) noexcept : file_(file) {}

  /// `depth` is the number of nodes around this one.
  template <class X>
  void give_to(X& node, std::string& name, std::size_t depth = 0) const {
    if (depth == most_depth) refuse_depth(name);
    constexpr ChildKind kind = child_kind<X>;
    if constexpr (is_no_model_value<X> || HasDtype<X> || StringNode<X> || FixedNumbers<X> || ForeignMatrix<X>) {
    } else if constexpr (is_reduced<X>) {
      give_to(node.value, name, depth);
    } else if constexpr (std::is_array_v<X>) {
      for (std::size_t i = 0; i < std::extent_v<X>; ++i) {
        const NameStep step(name);
        step.add(std::to_string(i));
        give_to(node[i], name, depth + 1);
      }
    } else if constexpr (ShapedArray<X>) {
      if constexpr (requires { X::uninitialized(node.extents()); }) give_extents(node, name);
    } else if constexpr (NumberRange<X>) {
      using T = std::remove_cvref_t<decltype(*node.data())>;
      const HeaderEntry* const entry = entry_for<T>(name, 1);
      if constexpr (requires { node.resize(std::size_t{}); }) {
        if (entry != nullptr) node.resize(static_cast<std::size_t>(entry->shape[0]));
      }
    } else {
      if constexpr (kind == ChildKind::row || kind == ChildKind::sequence) {
        if constexpr (requires { node.resize(std::size_t{}); }) node.resize(elements_of(name));
      } else if constexpr (kind == ChildKind::map) {
        add_keys(node, name);
      } else if constexpr (kind == ChildKind::optional) {
        if (has_tree(name)) node.emplace();
      }
      visit_children<WithPlaces>(node, LeafPath(""),
                                 [&]<class Place>(auto& child, const LeafPath&, const Place& place) {
                                   if constexpr (!std::is_const_v<typename Place::type>) {
                                     const NameStep step(name);
                                     step.add_place(place);
                                     this->give_to(child, name, depth + 1);
                                   }
                                 });
    }
  }

 private:
  // The names in a file must not decide how much stack a tree takes whose struct is inside itself.
  static constexpr std::size_t most_depth = 1000;

  [[noreturn]] FANOUT_INLINE void refuse_depth(const std::string& name) const;

  bool has_tree(std::string_view name) const { return name.empty() ? file_.size() != 0 : file_.has_tree(name); }

  /// The tensor of this name, if it has elements of type T and so many axes.
  template <class T>
  const HeaderEntry* entry_for(std::string_view name, std::size_t rank) const {
    const std::size_t i = file_.find(name.empty() ? single_name : name);
    constexpr std::size_t axes_of_element = saved_as_pair<T> ? 1 : 0;
    const bool fits = i != StateFile::none && file_[i].dtype == dtype_of<T>() &&
                      file_[i].shape.size() == rank + axes_of_element &&
                      (axes_of_element == 0 || file_[i].shape.back() == 2);
    return fits ? &file_[i] : nullptr;
  }

  template <class Array>
  void give_extents(Array& array, std::string_view name) const {
    const HeaderEntry* const entry = entry_for<typename Array::value_type>(name, Array::rank);
    if (entry == nullptr) return;
    Extents<Array::rank> extents;
    for (std::size_t axis = 0; axis < Array::rank; ++axis)
      extents.values[axis] = static_cast<std::size_t>(entry->shape[axis]);
    try {
      array = Array::uninitialized(extents);
    } catch (const ShapeMismatch&) {  // an array without elements may have any other extents in a file
      refuse_format(file_.path(), entry->offset, "extents that an array can have", shape_text(entry->shape));
    }
  }

  FANOUT_INLINE std::size_t elements_of(std::string& name) const;

  template <class Map>
  void add_keys(Map& map, const std::string& name) const {
    using Key = typename Map::key_type;
    const std::string front = name.empty() ? name : name + '.';
    static_assert(!std::is_floating_point_v<Key>,
                  "fanout: load<T>() makes no map with floating keys, since a dot in a name ends a key; make the map, "
                  "and load() into it");
    file_.visit_names_from(front, [&](std::string_view found) {
      if (!found.starts_with(front)) return false;
      const std::string_view rest = found.substr(front.size());
      const std::string_view text = rest.substr(0, rest.find('.'));
      if constexpr (std::is_floating_point_v<Key>) {
      } else if constexpr (!std::is_integral_v<Key> && !OwnsText<Key>) {
        static_assert(OwnsText<Key>,
                      "fanout: load<T>() makes the keys of a map from names in a file that is gone afterwards, so they "
                      "own their text: std::string, and no view of one");
      } else if constexpr (std::is_integral_v<Key>) {
        using Number = std::conditional_t<std::is_signed_v<Key>, long long, unsigned long long>;
        Number number{};
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool is_key = read.ec == std::errc() && read.ptr == text.data() + text.size() &&
                            static_cast<Number>(static_cast<Key>(number)) == number;
        if (is_key) map[static_cast<Key>(number)];
      } else {
        if (!text.empty()) map[Key(text)];
      }
      return true;
    });
  }

  const StateFile& file_;
};

}  // namespace detail

/// Makes a tree from a safetensors file: `auto network = fanout::load<Network>("network.safetensors")`. T is default
/// constructed. Then its tensors get the extents that are in the file, in host memory, its vectors as many elements as
/// are numbered there, its maps the keys, and its optionals a value if there is one. Variants stay as they are. Loads
/// the file into that tree and returns it. A key of a map must not have a dot. A tree has at most 1000 levels.
///
/// Throws as load() does: StateMismatch if the file does not fit a T.
template <std::default_initializable T>
T load(const std::string& path, const detail::StripPrefix& strip = {}) {
  T tree{};
  std::string name;
  const detail::StateFile file(path, strip);
  detail::StateStructure(file).give_to(tree, name);
  detail::load_from(file, tree);
  return tree;
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/state/loaded_tree.ipp>
#endif

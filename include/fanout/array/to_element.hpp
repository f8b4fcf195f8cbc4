// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Values with elements of another type.

namespace detail {

/// How a value of type X in a tree is converted to elements of type T. This one is for what keeps its type.
template <class T, class X>
struct ToElement {
  using type = X;
  static const X& convert(const X& x) { return x; }
};

template <class T, class X>
using to_element_t = typename ToElement<T, std::remove_cvref_t<X>>::type;

template <class T, class X>
to_element_t<T, X> to_element(const X& x) {
  return ToElement<T, X>::convert(x);
}

/// An array of elements of type T with those of `x`, in the memory of `x`. Elements in another memory are converted on
/// the host.
template <class T, ContiguousArray X>
Tensor<T, X::rank> array_to_element(const X& x) {
  const backend::Memory memory = backend::memory_of(x.space());
  if (memory.operations == nullptr) refuse_transfer(host_memory, x.space());
  if constexpr (std::same_as<T, typename X::value_type>) {
    return fanout::to(View<const T, X::rank>(x), memory);
  } else {
    if (!(x.space() == host_memory)) {
      const auto here = to_host(View<const typename X::value_type, X::rank>(x));
      return fanout::to(array_to_element<T>(here), memory);
    }
    auto result = Tensor<T, X::rank>::uninitialized(x.extents());
    for (std::size_t i = 0; i < x.size(); ++i) result.data()[i] = static_cast<T>(x.data()[i]);
    return result;
  }
}

template <class T, std::floating_point X>
struct ToElement<T, X> {
  using type = T;
  static T convert(X x) { return static_cast<T>(x); }
};

template <class T, ContiguousArray X>
  requires std::floating_point<typename X::value_type>
struct ToElement<T, X> {
  using type = Tensor<T, X::rank>;
  static type convert(const X& x) { return array_to_element<T>(x); }
};

template <class T, class... K, class... V>
struct ToElement<T, Dict<Entry<K, V>...>> {
  using type = Dict<Entry<K, to_element_t<T, V>>...>;
  static type convert(const Dict<Entry<K, V>...>& x) {
    return {std::tuple<to_element_t<T, V>...>{to_element<T>(x[K{}])...}};
  }
};

template <class T, MapNode X>
struct ToElement<T, X> {
  using type = rebind_map_t<X, to_element_t<T, typename X::mapped_type>>;
  static type convert(const X& x) {
    type result;
    for (const auto& [key, value] : x) result.emplace(key, to_element<T>(value));
    return result;
  }
};

/// A vector of trees or of numbers.
template <class X>
concept AnyVector =
    !StringNode<X> && !MapNode<X> && !ContiguousArray<X> && requires(X & vector, const typename X::value_type& value) {
  vector.push_back(value);
};

template <class T, AnyVector X>
struct ToElement<T, X> {
  using type = rebind_element_t<X, to_element_t<T, typename X::value_type>>;
  static type convert(const X& x) {
    type result;
    for (const auto& value : x) result.push_back(to_element<T, typename X::value_type>(value));
    return result;
  }
};

template <class T, OptionalNode X>
struct ToElement<T, X> {
  using type = rebind_element_t<X, to_element_t<T, typename X::value_type>>;
  static type convert(const X& x) {
    if (!x.has_value()) return {};
    return type(to_element<T>(*x));
  }
};

template <class T, class X, class Indices = std::make_index_sequence<std::tuple_size_v<X>>>
struct TupleToElement;
template <class T, class X, std::size_t... I>
struct TupleToElement<T, X, std::index_sequence<I...>> {
  using type = rebind_tuple_t<X, to_element_t<T, std::tuple_element_t<I, X>>...>;
  static type convert(const X& x) { return type{to_element<T>(std::get<I>(x))...}; }
};
template <class T, TupleNode X>
struct ToElement<T, X> : TupleToElement<T, X> {};

template <class T, class X, class Indices = std::make_index_sequence<AlternativesOf<X>::size>>
struct VariantToElement;
template <class T, class X, std::size_t... I>
struct VariantToElement<T, X, std::index_sequence<I...>> {
  using type = rebind_tuple_t<X, to_element_t<T, typename AlternativesOf<X>::template type<I>>...>;
  static type convert(const X& x) {
    return at_alternative(x, [&](auto at) {
      constexpr std::size_t held = decltype(at)::value;
      return type(std::in_place_index<held>, to_element<T>(AlternativesOf<X>::template get<held>(x)));
    });
  }
};
template <class T, VariantNode X>
struct ToElement<T, X> : VariantToElement<T, X> {};

/// The struct with its template arguments converted: of `Weights<float>` a `Weights<double>`.
template <class T, class X>
struct rebind_struct {
  using type = X;
};
template <class T, template <class...> class S, class... Args>
struct rebind_struct<T, S<Args...>> {
  using type = S<to_element_t<T, Args>...>;
};
template <class T, template <class, template <class, std::size_t> class> class S, class Arg,
          template <class, std::size_t> class Array>
struct rebind_struct<T, S<Arg, Array>> {
  using type = S<to_element_t<T, Arg>, Array>;
};

template <class T, class X, class To, std::size_t... I>
constexpr bool holds_converted(std::index_sequence<I...>) {
  return (std::same_as<to_element_t<T, typename FieldsOf<X>::template type<I>>,
                       std::remove_cvref_t<typename FieldsOf<To>::template type<I>>> &&
          ...);
}

template <class T, StructNode X>
struct ToElement<T, X> {
  using type = typename rebind_struct<T, X>::type;
  static type convert(const X& x) {
    constexpr bool holds_all = holds_converted<T, X, type>(std::make_index_sequence<FieldsOf<X>::size>());
    static_assert(
        holds_all,
        "fanout: the members of a struct keep their types, so to<T>(x) cannot convert them; make the struct a "
        "template of its element type (Weights<float>), or convert a tuple or a dict");
    if constexpr (holds_all) {
      return FieldsOf<type>::make(
          [&](auto index) { return to_element<T>(FieldsOf<X>::template get<decltype(index)::value>(x)); });
    }
    __builtin_unreachable();  // refused, and this silences what would follow
  }
};

}  // namespace detail

/// A copy with elements of type T: `to<double>(x)`. An array or a number is converted whatever its type, as static_cast
/// does. Of a tree the arrays and numbers of floating point are converted, as PyTorch's `Module.to(dtype)` does, and all
/// else is copied: integers, bools and strings keep their type. A View becomes a Tensor. Containers become those of the
/// converted elements, and a struct `Weights<float>` a `Weights<double>`.
///
/// Arrays stay in their memory. Those that are not in host memory are converted on the host, so each costs two transfers.
/// Waits until the copies are there. Throws DeviceMismatch where no way is known, and OutOfMemory.
template <class T, class X>
  requires std::is_arithmetic_v<T>
auto to(const X& x) {
  if constexpr (detail::ContiguousArray<X>) {
    return detail::array_to_element<T>(x);
  } else if constexpr (std::is_arithmetic_v<X>) {
    return static_cast<T>(x);
  } else {
    return detail::to_element<T>(x);
  }
}

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/tensor.hpp>
#include <fanout/array/to.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Conversion of values to another element type.

namespace detail {

/// Converts a value of type X in a tree to elements of type T. The primary template keeps the value as it is.
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

/// A Tensor with the elements of `x` as T, in the memory of `x`. Arrays in another memory than the host's are converted
/// on the host.
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

template <class T>
struct AsElements {
  template <class X>
  using type = to_element_t<T, X>;
};

template <class T, class X>
  requires(Rebuildable<X> && !StructNode<X> && !SpanNode<X> && !shows_elements<X>)
struct ToElement<T, X> {
  using type = rebuilt_t<X, AsElements<T>>;
  static type convert(const X& x) {
    return rebuild<type>(x, output_root, [](const auto& child, const LeafPath&, auto) -> decltype(auto) {
      return to_element<T>(child);
    });
  }
};

/// A container with push_back but without references to its elements, as a std::vector<bool> or a c10::List.
template <class X>
concept OtherVector = !Rebuildable<X> && !StringNode<X> && !ContiguousArray<X> && requires(X & vector) {
  vector.push_back(std::declval<const typename X::value_type&>());
};

template <class T, OtherVector X>
struct ToElement<T, X> {
  using type = rebind_element_t<X, to_element_t<T, typename X::value_type>>;
  static type convert(const X& x) {
    type result;
    for (const auto& value : x) result.push_back(to_element<T, typename X::value_type>(value));
    return result;
  }
};

/// The struct with its template arguments converted: `Weights<float>` becomes `Weights<double>`.
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
      return rebuild<type>(x, output_root,
                           [](const auto& field, const LeafPath&, auto) { return to_element<T>(field); });
    }
    __builtin_unreachable();  // the static_assert has failed; this avoids a second error
  }
};

}  // namespace detail

/// A copy with elements of type T: `to<double>(x)`. A single array or number is converted from any type, as static_cast
/// does. In a tree, only floating-point arrays and numbers are converted, as PyTorch's `Module.to(dtype)` does.
/// Integers, bools and strings keep their type. A View becomes a Tensor. Containers hold the converted elements, and a
/// struct `Weights<float>` becomes `Weights<double>`.
///
/// Arrays stay in their memory. An array outside of host memory is converted on the host, which costs two transfers.
/// Waits until the copies are there. Throws OutOfMemory, and DeviceMismatch if fanout knows no transfer between the
/// memories.
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

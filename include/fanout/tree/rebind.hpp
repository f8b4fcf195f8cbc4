// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

template <class X, class... T>
struct rebind_tuple;
template <template <class...> class C, class... Old, class... T>
struct rebind_tuple<C<Old...>, T...> {
  using type = C<T...>;
};
template <template <class, std::size_t> class C, class Old, std::size_t N, class First, class... T>
struct rebind_tuple<C<Old, N>, First, T...> {
  using type = C<First, N>;  // all elements of an array have one type
};
template <template <class, std::size_t> class C, class Old>
struct rebind_tuple<C<Old, 0>> {
  using type = C<Old, 0>;
};

template <class X, class T>
struct rebind_element;
template <template <class...> class C, class Old, class... Rest, class T>
struct rebind_element<C<Old, Rest...>, T> {
  using type = C<T>;
};

// A map keeps its order or its hash, and gets the default allocator. The arguments behind the values are counted
// separately, since g++ takes C<K, T, Order, Allocator> for an unordered_map as well.
template <template <class...> class C, class K, class T, class... Rest>
struct map_with;
template <template <class...> class C, class K, class T, class Order, class Allocator>
struct map_with<C, K, T, Order, Allocator> {
  using type = C<K, T, Order>;
};
template <template <class...> class C, class K, class T, class Hash, class Equal, class Allocator>
struct map_with<C, K, T, Hash, Equal, Allocator> {
  using type = C<K, T, Hash, Equal>;
};

template <class X, class T>
struct rebind_map;
template <template <class...> class C, class K, class Old, class... Rest, class T>
struct rebind_map<C<K, Old, Rest...>, T> : map_with<C, K, T, Rest...> {};

template <class X, template <class, std::size_t> class New>
struct rebind_arrays {};
template <template <template <class, std::size_t> class> class S, template <class, std::size_t> class Old,
          template <class, std::size_t> class New>
struct rebind_arrays<S<Old>, New> {
  using type = S<New>;
};
template <template <class, template <class, std::size_t> class> class S, class T,
          template <class, std::size_t> class Old, template <class, std::size_t> class New>
struct rebind_arrays<S<T, Old>, New> {
  using type = S<T, New>;
};

/// The tuple, pair, array or variant X with elements of these types.
template <class X, class... T>
using rebind_tuple_t = typename rebind_tuple<X, T...>::type;

/// The vector or optional X with elements of type T.
template <class X, class T>
using rebind_element_t = typename rebind_element<X, T>::type;

/// The map X with values of type T.
template <class X, class T>
using rebind_map_t = typename rebind_map<X, T>::type;

/// A struct that is a template of the kind of its arrays, with another kind: `State<ConstView>` for `State<Tensor>`.
/// The element type may come before the kind, `State<float, Tensor>`.
template <class X, template <class, std::size_t> class Array>
using rebind_arrays_t = typename rebind_arrays<X, Array>::type;

}}}  // namespace fanout::v0::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include <fanout/tree/plain_struct.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// References to the members of a struct. T are their declared types, const if the struct is.
template <class... T>
struct TiedMembers {
  template <std::size_t I>
  using type = std::tuple_element_t<I, std::tuple<T...>>;

  std::tuple<std::remove_reference_t<T>&...> references;
};

template <class... T>
constexpr TiedMembers<T...> tied(std::remove_reference_t<T>&... members) {
  return {std::tuple<std::remove_reference_t<T>&...>(members...)};
}

// Only structured bindings reach members without their names, and they need a name for each. So there is one case for
// each number of members. `decltype` of such a name is the declared type of the member, also if it is a reference.
template <std::size_t N, class X>
constexpr auto tie_so_many([[maybe_unused]] X& object) {
  if constexpr (N == 0) {
    return tied<>();
  } else if constexpr (N == 1) {
    auto& [m1] = object;
    return tied<decltype(m1)>(m1);
  } else if constexpr (N == 2) {
    auto& [m1, m2] = object;
    return tied<decltype(m1), decltype(m2)>(m1, m2);
  } else if constexpr (N == 3) {
    auto& [m1, m2, m3] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3)>(m1, m2, m3);
  } else if constexpr (N == 4) {
    auto& [m1, m2, m3, m4] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4)>(m1, m2, m3, m4);
  } else if constexpr (N == 5) {
    auto& [m1, m2, m3, m4, m5] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5)>(m1, m2, m3, m4, m5);
  } else if constexpr (N == 6) {
    auto& [m1, m2, m3, m4, m5, m6] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6)>(m1, m2, m3, m4, m5,
                                                                                                    m6);
  } else if constexpr (N == 7) {
    auto& [m1, m2, m3, m4, m5, m6, m7] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7)>(
        m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (N == 8) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8)>(m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (N == 9) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9)>(m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (N == 10) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (N == 11) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (N == 12) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12)>(m1, m2, m3, m4, m5, m6, m7, m8,
                                                                                         m9, m10, m11, m12);
  } else if constexpr (N == 13) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (N == 14) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (N == 15) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (N == 16) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (N == 17) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13,
                                                             m14, m15, m16, m17);
  } else if constexpr (N == 18) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10,
                                                                            m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (N == 19) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (N == 20) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20);
  } else if constexpr (N == 21) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20),
                decltype(m21)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                               m20, m21);
  } else if constexpr (N == 22) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] =
        object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                               m20, m21, m22);
  } else if constexpr (N == 23) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] =
        object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16,
                                              m17, m18, m19, m20, m21, m22, m23);
  } else if constexpr (N == 24) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13,
                                                             m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24);
  } else if constexpr (N == 25) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10,
                                                                            m11, m12, m13, m14, m15, m16, m17, m18, m19,
                                                                            m20, m21, m22, m23, m24, m25);
  } else if constexpr (N == 26) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24,
        m25, m26);
  } else if constexpr (N == 27) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24,
        m25, m26, m27);
  } else if constexpr (N == 28) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27, m28] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27),
                decltype(m28)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                               m20, m21, m22, m23, m24, m25, m26, m27, m28);
  } else if constexpr (N == 29) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27, m28, m29] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27), decltype(m28),
                decltype(m29)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19,
                               m20, m21, m22, m23, m24, m25, m26, m27, m28, m29);
  } else if constexpr (N == 30) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27, m28, m29, m30] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27), decltype(m28),
                decltype(m29), decltype(m30)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16,
                                              m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30);
  } else if constexpr (N == 31) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27, m28, m29, m30, m31] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27), decltype(m28),
                decltype(m29), decltype(m30), decltype(m31)>(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13,
                                                             m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
                                                             m26, m27, m28, m29, m30, m31);
  } else if constexpr (N == 32) {
    auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
           m24, m25, m26, m27, m28, m29, m30, m31, m32] = object;
    return tied<decltype(m1), decltype(m2), decltype(m3), decltype(m4), decltype(m5), decltype(m6), decltype(m7),
                decltype(m8), decltype(m9), decltype(m10), decltype(m11), decltype(m12), decltype(m13), decltype(m14),
                decltype(m15), decltype(m16), decltype(m17), decltype(m18), decltype(m19), decltype(m20), decltype(m21),
                decltype(m22), decltype(m23), decltype(m24), decltype(m25), decltype(m26), decltype(m27), decltype(m28),
                decltype(m29), decltype(m30), decltype(m31), decltype(m32)>(
        m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24,
        m25, m26, m27, m28, m29, m30, m31, m32);
  }
}

/// References to the members of a plain struct, in their order: `std::get<I>(tie_members(object).references)`. Borrows
/// the object.
template <class X>
  requires PlainStruct<std::remove_const_t<X>>
constexpr auto tie_members(X& object) { return tie_so_many<member_count<std::remove_const_t<X>>>(object); }

}}}  // namespace fanout::v0::detail

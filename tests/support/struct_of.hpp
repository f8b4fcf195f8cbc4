// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

namespace fanout_test {

/// A struct of N members m1, m2, ... of type T, for N up to 34.
template <class T, std::size_t N>
struct StructOf;

template <class T>
struct StructOf<T, 0> {};
template <class T>
struct StructOf<T, 1> {
  T m1;
};
template <class T>
struct StructOf<T, 2> {
  T m1, m2;
};
template <class T>
struct StructOf<T, 3> {
  T m1, m2, m3;
};
template <class T>
struct StructOf<T, 4> {
  T m1, m2, m3, m4;
};
template <class T>
struct StructOf<T, 5> {
  T m1, m2, m3, m4, m5;
};
template <class T>
struct StructOf<T, 6> {
  T m1, m2, m3, m4, m5, m6;
};
template <class T>
struct StructOf<T, 7> {
  T m1, m2, m3, m4, m5, m6, m7;
};
template <class T>
struct StructOf<T, 8> {
  T m1, m2, m3, m4, m5, m6, m7, m8;
};
template <class T>
struct StructOf<T, 9> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9;
};
template <class T>
struct StructOf<T, 10> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10;
};
template <class T>
struct StructOf<T, 11> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11;
};
template <class T>
struct StructOf<T, 12> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12;
};
template <class T>
struct StructOf<T, 13> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13;
};
template <class T>
struct StructOf<T, 14> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14;
};
template <class T>
struct StructOf<T, 15> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15;
};
template <class T>
struct StructOf<T, 16> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16;
};
template <class T>
struct StructOf<T, 17> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17;
};
template <class T>
struct StructOf<T, 18> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18;
};
template <class T>
struct StructOf<T, 19> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19;
};
template <class T>
struct StructOf<T, 20> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20;
};
template <class T>
struct StructOf<T, 21> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21;
};
template <class T>
struct StructOf<T, 22> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22;
};
template <class T>
struct StructOf<T, 23> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23;
};
template <class T>
struct StructOf<T, 24> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24;
};
template <class T>
struct StructOf<T, 25> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25;
};
template <class T>
struct StructOf<T, 26> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26;
};
template <class T>
struct StructOf<T, 27> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27;
};
template <class T>
struct StructOf<T, 28> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28;
};
template <class T>
struct StructOf<T, 29> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29;
};
template <class T>
struct StructOf<T, 30> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29, m30;
};
template <class T>
struct StructOf<T, 31> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29, m30, m31;
};
template <class T>
struct StructOf<T, 32> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29, m30, m31, m32;
};
template <class T>
struct StructOf<T, 33> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29, m30, m31, m32, m33;
};
template <class T>
struct StructOf<T, 34> {
  T m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25,
      m26, m27, m28, m29, m30, m31, m32, m33, m34;
};

}  // namespace fanout_test

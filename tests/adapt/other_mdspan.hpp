// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <span>

/// As much of the interface of std::mdspan as there must be, as libraries have it for compilers without one.
namespace other {

template <class I, std::size_t... E>
class extents {
 public:
  using index_type = I;
  using rank_type = std::size_t;
  static constexpr std::size_t rank() { return sizeof...(E); }

  constexpr extents() = default;
  explicit constexpr extents(const std::array<I, sizeof...(E)>& all) : all_(all) {}
  constexpr I extent(std::size_t axis) const { return all_[axis]; }

 private:
  std::array<I, sizeof...(E)> all_{(E == std::dynamic_extent ? I() : static_cast<I>(E))...};
};

template <class E>
class strided_mapping {
 public:
  using index_type = typename E::index_type;
  using strides_type = std::array<index_type, E::rank()>;

  constexpr strided_mapping() = default;
  constexpr strided_mapping(const E& extents, const strides_type& strides) : extents_(extents), strides_(strides) {}
  constexpr const E& extents() const { return extents_; }
  constexpr index_type stride(std::size_t axis) const { return strides_[axis]; }
  template <class... Index>
  constexpr index_type operator()(Index... index) const {
    index_type sum = 0;
    std::size_t axis = 0;
    ((sum += static_cast<index_type>(index) * strides_[axis++]), ...);
    return sum;
  }

 private:
  E extents_{};
  strides_type strides_{};
};

template <bool LastFirst, class E>
class packed_mapping : public strided_mapping<E> {
 public:
  constexpr packed_mapping() : packed_mapping(E()) {}
  explicit constexpr packed_mapping(const E& extents) : strided_mapping<E>(extents, packed(extents)) {}

 private:
  static constexpr auto packed(const E& extents) {
    typename strided_mapping<E>::strides_type strides{};
    typename E::index_type step = 1;
    for (std::size_t i = 0; i < E::rank(); ++i) {
      const std::size_t axis = LastFirst ? E::rank() - 1 - i : i;
      strides[axis] = step;
      step *= extents.extent(axis);
    }
    return strides;
  }
};

struct layout_right {
  template <class E>
  using mapping = packed_mapping<true, E>;
};
struct layout_left {
  template <class E>
  using mapping = packed_mapping<false, E>;
};
struct layout_stride {
  template <class E>
  using mapping = strided_mapping<E>;
};

/// Has no strides.
struct layout_mirrored {
  template <class E>
  class mapping {
   public:
    constexpr mapping() = default;
    explicit constexpr mapping(const E& extents) : size_(extents.extent(0)) {}
    constexpr auto operator()(auto i, auto...) const { return size_ - 1 - i; }

   private:
    typename E::index_type size_ = 0;
  };
};

template <class T>
struct default_accessor {
  using element_type = T;
  using data_handle_type = T*;
  default_accessor() = default;
  template <class U>
  constexpr default_accessor(default_accessor<U>) {}
  constexpr T& access(T* data, std::size_t i) const { return data[i]; }
  constexpr T* offset(T* data, std::size_t i) const { return data + i; }
};

template <class T, class E, class L = layout_right, class A = default_accessor<T>>
class mdspan {
 public:
  using element_type = T;
  using extents_type = E;
  using layout_type = L;
  using accessor_type = A;
  using mapping_type = typename L::template mapping<E>;
  using index_type = typename E::index_type;
  using rank_type = typename E::rank_type;
  using data_handle_type = typename A::data_handle_type;
  static constexpr std::size_t rank() { return E::rank(); }

  mdspan(data_handle_type data, const mapping_type& mapping, const E& extents, A accessor = {})
      : data_(data), mapping_(mapping), extents_(extents), accessor_(accessor) {}
  mdspan(data_handle_type data, const mapping_type& mapping, A accessor = {})
      : mdspan(data, mapping, mapping.extents(), accessor) {}

  const data_handle_type& data_handle() const { return data_; }
  const mapping_type& mapping() const { return mapping_; }
  const A& accessor() const { return accessor_; }
  index_type extent(std::size_t axis) const { return extents_.extent(axis); }

 private:
  data_handle_type data_;
  mapping_type mapping_;
  E extents_;
  A accessor_;
};

}  // namespace other

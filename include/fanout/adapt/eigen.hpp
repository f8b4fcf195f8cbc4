// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <Eigen/Core>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/gather/combine.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>

// Matrices and arrays of Eigen (https://eigen.tuxfamily.org), row-major or column-major. If the number of rows is
// dynamic, they are split by rows. If it is fixed (a Matrix3f, a RowVectorXd), they are parameters: every replica gets
// them whole. Both work with psum, pmean and the other reduction rules, and with first. A std::vector of fixed-size
// ones, for example of points, is an array of them.

namespace fanout { inline namespace v0 {

namespace detail {

/// Any dense type of Eigen, expressions too.
template <class X>
concept EigenDense = requires {
  typename X::StorageKind;
  typename X::PlainObject;
  X::RowsAtCompileTime;
}
&&std::derived_from<X, Eigen::DenseBase<X>>;

/// A type with coefficients in memory: a matrix, an array, and a Map, Ref, Block or transpose of one.
template <class X>
concept EigenInMemory = EigenDense<X> &&((int(X::Flags) & int(Eigen::DirectAccessBit)) != 0);

/// A type that is computed when it is assigned.
template <class X>
concept EigenExpression = EigenDense<X> && !EigenInMemory<X>;

template <class X>
concept EigenBatch = EigenInMemory<X> && int(X::RowsAtCompileTime) == Eigen::Dynamic;

/// The owning type with a dynamic number of rows, for concatenated results.
template <class Plain>
struct eigen_any_rows;
template <class T, int R, int C, int Options, int MaxR, int MaxC>
struct eigen_any_rows<Eigen::Matrix<T, R, C, Options, MaxR, MaxC>> {
  using type = Eigen::Matrix<T, Eigen::Dynamic, C, Options, Eigen::Dynamic, MaxC>;
};
template <class T, int R, int C, int Options, int MaxR, int MaxC>
struct eigen_any_rows<Eigen::Array<T, R, C, Options, MaxR, MaxC>> {
  using type = Eigen::Array<T, Eigen::Dynamic, C, Options, Eigen::Dynamic, MaxC>;
};
template <class X>
using eigen_any_rows_t = typename eigen_any_rows<typename X::PlainObject>::type;

template <class X>
inline constexpr bool is_eigen_vector = int(X::ColsAtCompileTime) == 1;
template <class X>
inline constexpr bool is_eigen_packed = int(X::InnerStrideAtCompileTime) == 1;

/// The Eigen stride type of rows of X. `Eigen::Ref<const Matrix>` takes these without a copy.
template <class X>
using eigen_stride_t = std::conditional_t<
    is_eigen_vector<X>, std::conditional_t<is_eigen_packed<X>, Eigen::Stride<0, 0>, Eigen::InnerStride<>>,
    std::conditional_t<is_eigen_packed<X>, Eigen::OuterStride<>, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>>;

inline Eigen::Index eigen_index(std::size_t i) { return static_cast<Eigen::Index>(i); }

}  // namespace detail

/// A shard's rows of a matrix, array, Map, Ref or Block of type X: a read-only Map in place, with the strides of X.
/// Borrows x. `forward` may also take it as `Eigen::Ref<const X>` or as a template parameter.
template <detail::EigenBatch X>
using EigenRows = Eigen::Map<const detail::eigen_any_rows_t<X>, Eigen::Unaligned, detail::eigen_stride_t<X>>;

template <detail::EigenBatch X>
struct leaf_traits<X> {
  using piece_type = EigenRows<X>;
  using concatenated_type = detail::eigen_any_rows_t<X>;

  static std::size_t rows(const X& x) { return static_cast<std::size_t>(x.rows()); }

  static piece_type piece(const X& x, std::size_t begin, std::size_t end) {
    using detail::eigen_index;
    constexpr bool rows_are_outer = bool(X::IsRowMajor) && !detail::is_eigen_vector<X>;
    const Eigen::Index step = rows_are_outer ? x.outerStride() : x.innerStride();
    const auto* const data = x.data() + (begin == end ? 0 : eigen_index(begin) * step);
    const Eigen::Index rows = eigen_index(end - begin);
    using Stride = detail::eigen_stride_t<X>;
    if constexpr (std::is_same_v<Stride, Eigen::Stride<0, 0>>) {
      return piece_type(data, rows);
    } else if constexpr (detail::is_eigen_vector<X>) {
      return piece_type(data, rows, Stride(x.innerStride()));
    } else if constexpr (detail::is_eigen_packed<X>) {
      return piece_type(data, rows, x.cols(), Stride(x.outerStride()));
    } else {
      return piece_type(data, rows, x.cols(), Stride(x.outerStride(), x.innerStride()));
    }
  }

  static std::span<const std::byte> bytes(const X& x) {
    if (x.size() == 0) return {};
    const Eigen::Index last = (x.outerSize() - 1) * x.outerStride() + (x.innerSize() - 1) * x.innerStride();
    return std::as_bytes(std::span(x.data(), static_cast<std::size_t>(last) + 1));
  }

  static concatenated_type concatenate(auto& pieces, const GatherTarget& place, const LeafPath& path) {
    detail::check_by_rows(place, path);
    if constexpr (std::is_same_v<X, concatenated_type>) {
      if (pieces.size() == 1 && pieces.owned()) return pieces.take_only();
    }
    Eigen::Index rows = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].cols() != pieces[0].cols()) {
        detail::refuse_extents(place, path, i, std::to_string(pieces[0].cols()) + " columns",
                               std::to_string(pieces[i].cols()),
                               "matrices are concatenated by rows, so their columns must agree");
      }
      rows += pieces[i].rows();
    }
    concatenated_type result(rows, pieces[0].cols());
    Eigen::Index row = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      result.middleRows(row, pieces[i].rows()) = pieces[i];
      row += pieces[i].rows();
    }
    return result;
  }
};

/// Reduction rules combine coefficient by coefficient; extents must agree.
template <class Rule, detail::EigenInMemory X>
  requires detail::Combines<Rule, typename X::Scalar>
struct gather_traits<Rule, X> {
  using type = typename X::PlainObject;
  using T = typename X::Scalar;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].rows() != pieces[0].rows() || pieces[i].cols() != pieces[0].cols()) {
        detail::refuse_extents(place, path, i, extents_of(pieces[0]), extents_of(pieces[i]),
                               std::string(Rule::name) + " needs matrices of the same extents from every replica");
      }
    }
    Wide result;
    detail::fold_shards<Rule>(
        place,
        [&](std::size_t i, double share) {
          result = pieces[i].template cast<Accumulated>().unaryExpr(
              [share](const Accumulated& x) { return Rule::template first<Accumulated>(x, share); });
        },
        [&](std::size_t i, double share) {
          result = result.binaryExpr(pieces[i].template cast<Accumulated>(),
                                     [share](const Accumulated& so_far, const Accumulated& x) {
                                       return Rule::template next<Accumulated>(so_far, x, share);
                                     });
        });
    if constexpr (std::is_same_v<Wide, type>) {
      return result;
    } else {
      return result.unaryExpr([](const Accumulated& x) { return detail::narrowed<T>(x); });
    }
  }

  static void visit_numbers(type& result, const LeafPath& path, const auto& f) {
    f(std::span<T>(result.data(), static_cast<std::size_t>(result.size())), path);
  }

 private:
  using Accumulated = typename Rule::template accumulated<T>;
  using Wide = std::remove_cvref_t<decltype(std::declval<const type&>().template cast<Accumulated>().eval())>;

  static std::string extents_of(const X& x) {
    return '[' + std::to_string(x.rows()) + ", " + std::to_string(x.cols()) + ']';
  }
};

template <detail::TakesFirst Rule, detail::EigenInMemory X>
  requires(!detail::EigenBatch<X>)
struct gather_traits<Rule, X> {
  using type = typename X::PlainObject;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    return pieces[place.first()];
  }
};

// Expressions are refused. A returned one would be computed when the matrices that it refers to are gone. An argument
// would be computed whole by every shard.

template <class Rule, detail::EigenExpression X>
struct gather_traits<Rule, X> {
  using type = typename X::PlainObject;

  static type gather(ShardResults<X>&, const GatherTarget&, const LeafPath&) {
    static_assert(sizeof(X) == 0,
                  "fanout: forward returns an Eigen expression, and its matrices are destroyed before it is evaluated; "
                  "return (a * b).eval(), or declare the return type of forward");
    __builtin_unreachable();
  }
};

template <detail::EigenExpression X>
  requires(int(X::RowsAtCompileTime) == Eigen::Dynamic)
struct scatter_traits<X> {
  using piece_type = EigenRows<detail::eigen_any_rows_t<X>>;

  template <class... Where>
  static piece_type piece(const X&, const Where&...) {
    static_assert(sizeof(X) == 0,
                  "fanout: an Eigen expression has no rows in memory to split; pass (a * b).eval(), or broadcast(x) if "
                  "every replica needs all of it");
    __builtin_unreachable();
  }
};

namespace detail {

/// The scalar of X; const if X cannot be written to.
template <class X>
using eigen_element_t = std::conditional_t<std::is_const_v<X> || (int(X::Flags) & int(Eigen::LvalueBit)) == 0,
                                           const typename X::Scalar, typename X::Scalar>;

template <class X>
inline constexpr std::size_t eigen_rank = is_eigen_vector<X> ? 1 : 2;

}  // namespace detail

/// Borrows a matrix or array, or a part of one, as a View: two axes [rows, cols], or one axis for a column vector. Must
/// be row-major; use `as_view(m.transpose())` to view a column-major matrix by columns. The view must not outlive the
/// matrix. Throws ShapeMismatch if there are gaps between rows or elements.
template <class X>
  requires detail::EigenInMemory<std::remove_cvref_t<X>>
auto as_view(X&& x) {
  using Plain = std::remove_cvref_t<X>;
  constexpr bool row_major = bool(Plain::IsRowMajor) || detail::is_eigen_vector<Plain>;
  constexpr bool owns = std::is_same_v<Plain, typename Plain::PlainObject>;
  using Borrowed = View<detail::eigen_element_t<std::remove_reference_t<X>>, detail::eigen_rank<Plain>>;
  static_assert(row_major,
                "fanout: a View is row-major, and this matrix is column-major; make it an Eigen::Matrix<T, "
                "Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, or view its columns with as_view(m.transpose())");
  if constexpr (!row_major) {
    return Borrowed();
  } else if constexpr (owns && !std::is_lvalue_reference_v<X>) {
    return detail::refuse_view_of_temporary<Borrowed>();
  } else {
    const bool gaps =
        x.size() != 0 &&
        (x.innerStride() != 1 || (detail::eigen_rank<Plain> == 2 && x.rows() > 1 && x.outerStride() != x.cols()));
    if (gaps) {
      throw ShapeMismatch(
          explain({.what = "a view of a part of a matrix",
                   .expected = "rows that follow each other without gaps",
                   .found = "strides of " + std::to_string(x.outerStride()) + " and " +
                            std::to_string(x.innerStride()) + " for " + std::to_string(x.cols()) + " columns",
                   .advice = "copy it with .eval() first"}));
    }
    if constexpr (detail::is_eigen_vector<Plain>) {
      return Borrowed(x.data(), x.size());
    } else {
      return Borrowed(x.data(), x.rows(), x.cols());
    }
  }
}

/// A View, or the rows of an Output, as an Eigen Map: a row-major matrix of two axes, or a column vector of one.
/// Borrows the elements. `as_eigen(output).noalias() = x * weight` computes into the gathered result.
template <class T>
auto as_eigen(View<T, 2> view) {
  using Matrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>>(
      view.data(), detail::eigen_index(view.extent(0)), detail::eigen_index(view.extent(1)));
}
template <class T>
auto as_eigen(View<T, 1> view) {
  using Vector = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Vector, Vector>>(view.data(),
                                                                                  detail::eigen_index(view.extent(0)));
}

/// The same for a Tensor, which the Map must not outlive.
template <class T, std::size_t R>
auto as_eigen(Tensor<T, R>& tensor) {
  return as_eigen(tensor.view());
}
template <class T, std::size_t R>
auto as_eigen(const Tensor<T, R>& tensor) {
  return as_eigen(tensor.view());
}
template <class T, std::size_t R>
auto as_eigen(const Tensor<T, R>&&) {
  return as_eigen(detail::refuse_view_of_temporary<View<const T, R>>());
}

}}  // namespace fanout::v0

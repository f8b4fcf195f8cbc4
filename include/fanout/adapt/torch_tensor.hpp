// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>  // first, else libtorch 1.13 does not compile with clang in C++20

#include <torch/types.h>

#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/gather/combine.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/gather/stack.hpp>
#include <fanout/scatter/axis.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

inline std::string torch_extents(const at::Tensor& tensor, std::int64_t from = 0) {
  std::string text = "[";
  for (std::int64_t axis = from; axis < tensor.dim(); ++axis) {
    text += (axis == from ? "" : ", ") + std::to_string(tensor.size(axis));
  }
  return text + "]";
}

inline void check_torch_memory(const at::Tensor& tensor, const LeafPath& path) {
  if (tensor.device().is_cpu()) return;
  throw DeviceMismatch(explain({.what = "a torch::Tensor in another memory",
                                .where = to_string(path),
                                .expected = "cpu",
                                .found = tensor.device().str(),
                                .advice = "copy it there first, with .cpu()"}));
}

/// True if nothing else refers to the tensor or its storage.
inline bool is_torch_alone(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1;
}

/// The i-th tensor itself if nothing else refers to it, else a copy: results share no memory with anything.
inline at::Tensor own_torch(const ShardResults<at::Tensor>& pieces, std::size_t i) {
  const at::Tensor& tensor = pieces[i];
  return !tensor.defined() || (pieces.owned() && is_torch_alone(tensor)) ? tensor : tensor.clone();
}

/// Checks that all shards returned tensors of one element type in host memory. Returns false if all are undefined.
/// Throws StructureMismatch or DeviceMismatch.
inline bool check_torch(const ShardResults<at::Tensor>& pieces, const GatherTarget& place, const LeafPath& path) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].defined() != pieces[0].defined()) {
      refuse_structure(place, path, i, "some replicas returned a tensor and some an undefined one",
                       pieces[0].defined() ? "a tensor" : "none", pieces[i].defined() ? "a tensor" : "none");
    }
    if (!pieces[i].defined()) continue;
    check_torch_memory(pieces[i], path);
    if (pieces[i].scalar_type() != pieces[0].scalar_type()) {
      refuse_structure(place, path, i, "replicas returned tensors of different types",
                       at::toString(pieces[0].scalar_type()), at::toString(pieces[i].scalar_type()));
    }
  }
  return pieces[0].defined();
}

/// The same, and checks that all extents agree, for the rule `name`. Throws ShapeMismatch, too.
inline bool check_same_torch(const ShardResults<at::Tensor>& pieces, const GatherTarget& place, const LeafPath& path,
                             const char* name) {
  if (!check_torch(pieces, place, path)) return false;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].sizes() != pieces[0].sizes()) {
      refuse_extents(place, path, i, torch_extents(pieces[0]), torch_extents(pieces[i]),
                     std::string(name) + " needs tensors of the same extents from every replica");
    }
  }
  return true;
}

/// The axis, counted from 0. Throws ShapeMismatch if x does not have it.
inline std::int64_t torch_axis(int axis, const at::Tensor& x, const LeafPath& path) {
  return static_cast<std::int64_t>(backend::checked_axis(axis, static_cast<std::size_t>(x.dim()), path));
}

/// Concatenates tensors on the axis of `place`. All other axes must agree.
inline at::Tensor concatenate_torch(const ShardResults<at::Tensor>& pieces, const GatherTarget& place,
                                    const LeafPath& path) {
  if (!check_torch(pieces, place, path)) return {};
  const bool numbers = pieces[0].dim() == 0;
  const std::int64_t axis = numbers ? 0 : torch_axis(place.axis, pieces[0], path);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    bool fits = pieces[i].dim() == pieces[0].dim();
    for (std::int64_t other = 0; fits && other < pieces[i].dim(); ++other) {
      fits = other == axis || pieces[i].size(other) == pieces[0].size(other);
    }
    if (!fits) {
      refuse_extents(place, path, i,
                     "on all axes but " + std::to_string(axis) + " those of " + torch_extents(pieces[0]),
                     torch_extents(pieces[i]),
                     "tensors are concatenated on axis " + std::to_string(axis) + ", so all others must agree");
    }
  }
  if (pieces.size() == 1 && !numbers) return own_torch(pieces, 0);
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < pieces.size(); ++i) tensors.push_back(pieces[i]);
  return numbers ? torch::stack(tensors) : torch::cat(tensors, axis);  // one value per shard, or the rows
}

}  // namespace detail

/// A torch::Tensor is split on any axis without a copy, and gathered by torch::cat. Tensors without axes are gathered
/// as one tensor with a value per shard. All of it can be differentiated. The number of axes is known only at run time,
/// so splitting a tensor without axes throws ShapeMismatch.
template <>
struct leaf_traits<at::Tensor> {
  using piece_type = at::Tensor;

  static std::size_t rows(const at::Tensor& x) { return rows_on(0, x, LeafPath("input")); }
  static at::Tensor piece(const at::Tensor& x, std::size_t begin, std::size_t end) {
    return piece_on(0, x, begin, end, LeafPath("input"));
  }

  static std::size_t rows_on(int axis, const at::Tensor& x, const LeafPath& path) {
    if (!x.defined() || x.dim() == 0) {
      throw ShapeMismatch(explain({.what = "a torch::Tensor without rows cannot be split",
                                   .where = to_string(path),
                                   .expected = "at least one axis",
                                   .found = x.defined() ? "none" : "an undefined tensor",
                                   .advice = "pass broadcast(x) if every replica needs all of it"}));
    }
    detail::check_torch_memory(x, path);
    return static_cast<std::size_t>(x.size(detail::torch_axis(axis, x, path)));
  }
  static at::Tensor piece_on(int axis, const at::Tensor& x, std::size_t begin, std::size_t end, const LeafPath& path) {
    return x.narrow(detail::torch_axis(axis, x, path), static_cast<std::int64_t>(begin),
                    static_cast<std::int64_t>(end - begin));
  }

  static std::span<const std::byte> bytes(const at::Tensor& x) {
    if (!x.defined() || x.dim() == 0 || x.numel() == 0 || !x.has_storage()) return {};
    std::int64_t last = 0;
    for (std::int64_t axis = 0; axis < x.dim(); ++axis) last += (x.size(axis) - 1) * x.stride(axis);
    return {static_cast<const std::byte*>(x.data_ptr()), static_cast<std::size_t>(last + 1) * x.element_size()};
  }

  static at::Tensor concatenate(auto& pieces, const GatherTarget& place, const LeafPath& path) {
    return detail::concatenate_torch(pieces, place, path);
  }
};

template <int Axis>
struct gather_traits<rules::ConcatenateOn<Axis>, at::Tensor> {
  using type = at::Tensor;
  static type gather(ShardResults<type>& pieces, const GatherTarget& place, const LeafPath& path) {
    return detail::concatenate_torch(pieces, place.on_axis(Axis), path);
  }
};

/// A tensor without axes stays one.
template <>
struct gather_traits<rules::Sharded, at::Tensor> {
  using type = at::Tensor;
  static type gather(ShardResults<type>& pieces, const GatherTarget&, const LeafPath&) {
    return detail::own_torch(pieces, 0);
  }
};

template <>
struct gather_traits<rules::Stack, at::Tensor> {
  using type = at::Tensor;
  static type gather(ShardResults<type>& pieces, const GatherTarget& place, const LeafPath& path) {
    if (!detail::check_same_torch(pieces, place, path, "stack")) return {};
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < pieces.size(); ++i) tensors.push_back(pieces[i]);
    return torch::stack(tensors);
  }
};

template <detail::TakesFirst Rule>
struct gather_traits<Rule, at::Tensor> {
  using type = at::Tensor;
  static type gather(ShardResults<type>& pieces, const GatherTarget& place, const LeafPath&) {
    return detail::own_torch(pieces, place.first());
  }
};

namespace detail {

template <class F>
concept CombinesTensors = requires(const at::Tensor& x) {
  { F()(x, x) } -> std::convertible_to<at::Tensor>;
};

template <class Rule>
inline constexpr bool combines_torch = std::is_base_of_v<rules::Sum, Rule> || std::is_same_v<Rule, rules::Mean> ||
                                       std::is_same_v<Rule, rules::Max> || std::is_same_v<Rule, rules::Min>;
template <CombinesTensors F>
inline constexpr bool combines_torch<rules::Fold<F>> = true;

template <class Rule>
at::Tensor combine_torch(const at::Tensor& so_far, const at::Tensor& x) {
  if constexpr (std::is_same_v<Rule, rules::Max>) {
    return torch::maximum(so_far, x);
  } else if constexpr (std::is_same_v<Rule, rules::Min>) {
    return torch::minimum(so_far, x);
  } else if constexpr (std::is_same_v<Rule, rules::Mean>) {
    return so_far + x;
  } else {
    return Rule::template next<at::Tensor>(so_far, x, 0);
  }
}

/// Calls `f(std::type_identity<T>())` for the type of the elements. Throws InvalidArgument for types that C++ has not.
template <class F>
void with_torch_type(const at::Tensor& x, const LeafPath& path, const F& f) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return f(std::type_identity<float>());
    case at::kDouble:
      return f(std::type_identity<double>());
    case at::kByte:
      return f(std::type_identity<std::uint8_t>());
    case at::kChar:
      return f(std::type_identity<std::int8_t>());
    case at::kShort:
      return f(std::type_identity<std::int16_t>());
    case at::kInt:
      return f(std::type_identity<std::int32_t>());
    case at::kLong:
      return f(std::type_identity<std::int64_t>());
    case at::kBool:
      return f(std::type_identity<bool>());
    default:
      throw InvalidArgument(explain({.what = "a torch::Tensor of this type cannot be combined over ranks",
                                     .where = to_string(path),
                                     .expected = "float, double, bool or integers",
                                     .found = at::toString(x.scalar_type()),
                                     .advice = "convert it, with .to(torch::kFloat) say"}));
  }
}

}  // namespace detail

/// Combines element by element. The element type is known only at run time, so a type that the rule does not take
/// throws InvalidArgument.
template <class Rule>
  requires detail::combines_torch<Rule>
struct gather_traits<Rule, at::Tensor> {
  using type = at::Tensor;

  static type gather(ShardResults<type>& pieces, const GatherTarget& place, const LeafPath& path) {
    constexpr bool mean = std::is_same_v<Rule, rules::Mean>;
    if (!detail::check_same_torch(pieces, place, path, Rule::name)) return {};
    const at::ScalarType found = pieces[0].scalar_type();
    if (mean ? !at::isFloatingType(found) && !at::isComplexType(found)
             : std::is_same_v<Rule, rules::Sum> && found == at::kBool) {
      throw InvalidArgument(explain({.what = std::string(Rule::name) + " does not take tensors of this type",
                                     .where = to_string(path),
                                     .expected = mean ? "floating or complex numbers" : "numbers",
                                     .found = at::toString(found),
                                     .advice = "convert it, with .to(torch::kFloat) say"}));
    }
    constexpr bool sum = mean || std::is_same_v<Rule, rules::Sum>;
    at::ScalarType common = found;
    for (std::size_t i = 1; i < pieces.size(); ++i) common = at::promoteTypes(common, pieces[i].scalar_type());
    const bool widens = sum && pieces.size() > 1 && (at::isFloatingType(common) || at::isComplexType(common));
    const at::ScalarType wide = at::isComplexType(common) ? at::kComplexDouble : at::kDouble;
    const auto weighed = [&](std::size_t i, double share) {
      const at::Tensor x = widens ? pieces[i].to(wide) : pieces[i];
      return mean ? x * share : x;
    };
    at::Tensor result;
    detail::fold_shards<Rule>(
        place, [&](std::size_t i, double share) { result = weighed(i, share); },
        [&](std::size_t i, double share) { result = detail::combine_torch<Rule>(result, weighed(i, share)); });
    if (widens) result = result.to(common);
    return detail::is_torch_alone(result) ? result : result.clone();
  }

  /// Over ranks. Throws InvalidArgument if the tensor is part of a graph, which other ranks are not part of, or has
  /// elements that are no numbers of C++.
  static void visit_numbers(type& result, const LeafPath& path, const auto& f) {
    if (!result.defined()) return;
    if (result.requires_grad()) {
      throw InvalidArgument(explain({.what = "a torch::Tensor that can be differentiated is combined over ranks",
                                     .where = to_string(path),
                                     .expected = "numbers, since a graph ends at its rank",
                                     .advice = "return its gradients from forward, and detach() the rest"}));
    }
    if (!result.is_contiguous()) result.set_data(result.contiguous());
    detail::with_torch_type(result, path, [&]<class T>(std::type_identity<T>) {
      f(std::span<T>(result.data_ptr<T>(), static_cast<std::size_t>(result.numel())), path);
    });
  }
};

namespace detail {

template <CombinesTensors F>
struct gather_chosen<rules::Fold<F>, at::Tensor> : gather_traits<rules::Fold<F>, at::Tensor> {};

}  // namespace detail

/// Borrows a tensor on the CPU as a View of its R axes: `as_view<const float, 2>(x)`. The view must not outlive the
/// storage of x. Throws ShapeMismatch unless x is contiguous and has R axes, InvalidArgument if its elements are not of
/// type T or it is undefined, and DeviceMismatch if it is on a GPU.
template <class T, std::size_t R>
View<T, R> as_view(const at::Tensor& x) {
  constexpr at::ScalarType type = c10::CppTypeToScalarType<std::remove_const_t<T>>::value;
  if (x.scalar_type() != type) {
    throw InvalidArgument(explain({.what = "a view of a torch::Tensor with other elements",
                                   .expected = at::toString(type),
                                   .found = x.defined() ? at::toString(x.scalar_type()) : "an undefined tensor"}));
  }
  detail::check_torch_memory(x, LeafPath("as_view"));  // an undefined tensor has no device, and was refused above
  if (x.dim() != std::int64_t{R} || !x.is_contiguous()) {
    throw ShapeMismatch(explain({.what = "a view of a torch::Tensor",
                                 .expected = "a contiguous one of " + std::to_string(R) + " axes",
                                 .found = detail::torch_extents(x),
                                 .advice = "x.contiguous() makes it contiguous"}));
  }
  Extents<R> extents;
  for (std::size_t axis = 0; axis < R; ++axis) {
    extents[axis] = static_cast<std::size_t>(x.size(static_cast<std::int64_t>(axis)));
  }
  return {x.data_ptr<std::remove_const_t<T>>(), extents};
}

namespace detail {

template <class T, std::size_t R, class Deleter>
at::Tensor torch_from(T* data, const Extents<R>& extents, const Deleter& deleter) {
  std::vector<std::int64_t> sizes;
  for (const std::size_t extent : extents.values) sizes.push_back(static_cast<std::int64_t>(extent));
  return torch::from_blob(data, sizes, deleter, c10::CppTypeToScalarType<T>::value);
}

}  // namespace detail

/// A View, the rows of an Output, or a Tensor as a torch::Tensor of the same elements, which must outlive it. Takes no
/// read-only views, since a torch::Tensor can be written to. Throws DeviceMismatch for memory that the host cannot use.
template <class T, std::size_t R>
  requires(!std::is_const_v<T>)
at::Tensor as_torch(View<T, R> view) {
  if (!(view.space() == host_memory)) detail::check_host_access(view.space());
  return detail::torch_from(view.data(), view.extents(), [](void*) {});
}
template <class T, std::size_t R>
at::Tensor as_torch(Tensor<T, R>& tensor) {
  return as_torch(tensor.view());
}

/// A torch::Tensor that owns the elements of `tensor`. Pass `std::move(tensor)` to avoid a copy. Throws DeviceMismatch
/// for memory that the host cannot use.
template <class T, std::size_t R>
at::Tensor to_torch(Tensor<T, R> tensor) {
  if (!(tensor.space() == host_memory)) detail::check_host_access(tensor.space());
  const auto owner = std::make_shared<Tensor<T, R>>(std::move(tensor));
  return detail::torch_from(owner->data(), owner->extents(), [owner](void*) {});
}

}}  // namespace fanout::v0

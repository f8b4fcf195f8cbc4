// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onnxruntime_cxx_api.h>

#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/base/error.hpp>
#include <fanout/context/context.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/state/dtype.hpp>
#include <fanout/state/state_leaf.hpp>
#include <fanout/state/visit_state.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An input or output of a file of ONNX.
struct OnnxPort {
  static constexpr std::size_t any_rank = ~std::size_t{0};

  std::string name;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> shape;  ///< -1 for an extent that the file does not say; empty if it says none

  /// True if the file says all extents behind the rows.
  bool has_row_size() const noexcept {
    return !shape.empty() && std::all_of(shape.begin() + 1, shape.end(), [](std::int64_t n) { return n >= 0; });
  }
};

constexpr ONNXTensorElementDataType onnx_type(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::boolean:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    case Dtype::u8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    case Dtype::i8:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
    case Dtype::u16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
    case Dtype::i16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
    case Dtype::f16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case Dtype::bf16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
    case Dtype::u32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;
    case Dtype::i32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case Dtype::f32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case Dtype::u64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
    case Dtype::i64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case Dtype::f64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    default:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
}

inline std::string onnx_type_name(ONNXTensorElementDataType type) {
  for (std::size_t i = 0; i < dtype_rows.size(); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (onnx_type(dtype) == type && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
      return std::string(dtype_rows[i].name);
    }
  }
  return "elements of ONNX's type " + std::to_string(type);
}

inline std::string onnx_text(ONNXTensorElementDataType type, std::size_t rank) {
  return onnx_type_name(type) + " with " + std::to_string(rank) + (rank == 1 ? " axis" : " axes");
}

inline std::string onnx_extents(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

inline OnnxPort onnx_port(Ort::AllocatedStringPtr name, const Ort::TypeInfo& info) {
  OnnxPort port{.name = name.get(), .shape = {}};
  if (info.GetONNXType() != ONNX_TYPE_TENSOR) return port;  // a sequence, a map: refused where it is used
  const auto tensor = info.GetTensorTypeAndShapeInfo();
  port.type = tensor.GetElementType();
  port.shape = tensor.GetShape();
  return port;
}

/// The ports of a session, by its functions that tell the name and the type of one.
template <class Name, class Info>
std::vector<OnnxPort> onnx_ports(const Ort::Session& session, std::size_t count, Name name, Info info) {
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<OnnxPort> ports;
  for (std::size_t i = 0; i < count; ++i) ports.push_back(onnx_port((session.*name)(i, allocator), (session.*info)(i)));
  return ports;
}
inline std::vector<OnnxPort> onnx_inputs(const Ort::Session& session) {
  return onnx_ports(session, session.GetInputCount(), &Ort::Session::GetInputNameAllocated,
                    &Ort::Session::GetInputTypeInfo);
}
inline std::vector<OnnxPort> onnx_outputs(const Ort::Session& session) {
  return onnx_ports(session, session.GetOutputCount(), &Ort::Session::GetOutputNameAllocated,
                    &Ort::Session::GetOutputTypeInfo);
}

/// The position of the port that a leaf of a tree names: by its name, or by its position in the file. A leaf that is
/// the whole tree is the only port. Throws InvalidArgument.
inline std::size_t find_port(const std::vector<OnnxPort>& ports, std::string_view name, const char* kind,
                             const std::string& where) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return i;
  }
  if (name == single_name && ports.size() == 1) return 0;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (std::to_string(i) == name) return i;
  }
  std::string all;
  for (const OnnxPort& port : ports) all += (all.empty() ? "" : ", ") + port.name;
  throw InvalidArgument(explain({.what = std::string("a model of ONNX has no such ") + kind,
                                 .where = where,
                                 .expected = all,
                                 .found = name == single_name ? "one array without a name" : std::string(name),
                                 .advice = "name the members of a struct or dict as the file does, or pass a tuple"}));
}

inline void check_port(const OnnxPort& port, ONNXTensorElementDataType type, std::size_t rank, const char* kind,
                       const std::string& where) {
  const bool fits = port.shape.empty() || rank == OnnxPort::any_rank || port.shape.size() == rank;
  if (port.type == type && fits && type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return;
  const std::size_t shown = rank == OnnxPort::any_rank ? port.shape.size() : rank;
  throw InvalidArgument(explain({.what = std::string("an ") + kind + " of a model of ONNX has another type",
                                 .where = where + ": " + port.name,
                                 .expected = onnx_text(port.type, port.shape.size()),
                                 .found = onnx_text(type, shown)}));
}
template <class T>
void check_port(const OnnxPort& port, std::size_t rank, const char* kind, const std::string& where) {
  check_port(port, onnx_type(dtype_of<T>()), rank, kind, where);
}

inline std::vector<const char*> names_of(const std::vector<OnnxPort>& ports) {
  std::vector<const char*> names;
  for (const OnnxPort& port : ports) names.push_back(port.name.c_str());
  return names;
}

inline std::vector<Ort::Value> no_values(std::size_t count) {
  std::vector<Ort::Value> values;
  for (std::size_t i = 0; i < count; ++i) values.emplace_back(nullptr);
  return values;
}

/// Throws InvalidArgument if an input has no value.
inline void check_all_bound(const std::vector<Ort::Value>& values, const std::vector<OnnxPort>& ports) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    throw InvalidArgument(
        explain({.what = "a model of ONNX was called without one of its inputs", .expected = ports[i].name}));
  }
}

/// The same memory as a value of ONNX Runtime. Borrows it.
inline Ort::Value onnx_value(const void* data, std::size_t bytes, const std::vector<std::int64_t>& shape,
                             ONNXTensorElementDataType type) {
  const auto host = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  // Run() does not write to inputs.
  return Ort::Value::CreateTensor(host, const_cast<void*>(data), bytes, shape.data(), shape.size(), type);
}

template <class T, std::size_t R>
Ort::Value onnx_value(const Output<T, R>& rows) {
  const auto extents = rows.extents();
  return onnx_value(rows.data(), rows.size() * sizeof(T), {std::begin(extents.values), std::end(extents.values)},
                    onnx_type(dtype_of<T>()));
}

/// Throws InvalidArgument if the leaf does not fit the input.
inline Ort::Value onnx_value(const StateLeaf<const std::byte>& leaf, const OnnxPort& port) {
  check_port(port, onnx_type(leaf.dtype), leaf.shape.size(), "input", "a call");
  if (leaf.space != host_memory || !leaf.strides.empty()) {
    throw InvalidArgument(explain({.what = "an input of a model of ONNX cannot be read in place",
                                   .where = port.name,
                                   .expected = "contiguous elements in host memory"}));
  }
  std::size_t bytes = size_of(leaf.dtype);
  for (const std::uint64_t extent : leaf.shape) bytes *= static_cast<std::size_t>(extent);
  return onnx_value(leaf.data, bytes, {leaf.shape.begin(), leaf.shape.end()}, onnx_type(leaf.dtype));
}

/// This shard's rows of an output with these extents, of which the first is that of the rows.
template <class T, std::size_t R, class C>
Output<T, R> onnx_rows(C& ctx, const std::vector<std::int64_t>& shape) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return output<T>(ctx, static_cast<std::size_t>(shape[I + 1])...);
  }
  (std::make_index_sequence<R - 1>());
}

/// This shard's rows of an output, copied from what ONNX Runtime has computed. Throws InvalidArgument if it has other
/// axes, or other rows than the shard.
template <class T, std::size_t R, class C>
Output<T, R> copied_rows(C& ctx, const Ort::Value& value, const OnnxPort& port) {
  const std::vector<std::int64_t> shape = value.GetTensorTypeAndShapeInfo().GetShape();
  check_port<T>({port.name, port.type, shape}, R, "output", "a call");
  if (static_cast<std::size_t>(shape[0]) != ctx.rows().size()) {
    throw InvalidArgument(explain({.what = "an output of a model of ONNX does not have the rows of its shard",
                                   .where = port.name,
                                   .expected = std::to_string(ctx.rows().size()) + " rows",
                                   .found = onnx_extents(shape)}));
  }
  const Output<T, R> rows = onnx_rows<T, R>(ctx, shape);
  if (rows.size() != 0) std::memcpy(rows.data(), value.GetTensorRawData(), rows.size() * sizeof(T));
  return rows;
}

/// The number of an output that has one.
template <class T>
T onnx_number(const Ort::Value& value, const std::string& name) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  if (info.GetElementCount() != 1) {
    throw InvalidArgument(explain({.what = "an output of a model of ONNX is no single number",
                                   .where = name,
                                   .found = onnx_extents(info.GetShape())}));
  }
  T number;
  std::memcpy(&number, value.GetTensorRawData(), sizeof number);
  return number;
}

}}}  // namespace fanout::v0::detail

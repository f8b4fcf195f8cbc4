// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace fanout_test {

/// A message of protobuf, as bytes. Numbers of fields are those of onnx.proto.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& text(unsigned field, const std::string& letters) {
    varint(field << 3 | 2);
    varint(letters.size());
    bytes_ += letters;
    return *this;
  }
  Message& message(unsigned field, const Message& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value > 127; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// An input or output of a graph. A negative extent is not known.
struct OnnxValue {
  std::string name;
  unsigned type = 1;  ///< of TensorProto.DataType: 1 is float, 7 is int64, 11 is double
  std::vector<std::int64_t> shape;

  Message message() const {
    Message extents;
    for (const std::int64_t extent : shape) {
      extents.message(
          1, extent < 0 ? Message().text(2, "batch") : Message().number(1, static_cast<std::uint64_t>(extent)));
    }
    return Message().text(1, name).message(2, Message().message(1, Message().number(1, type).message(2, extents)));
  }
};

/// A step of a graph.
struct OnnxNode {
  std::string operation;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, std::uint64_t>> attributes = {};

  Message message() const {
    Message node;
    for (const std::string& name : inputs) node.text(1, name);
    for (const std::string& name : outputs) node.text(2, name);
    node.text(4, operation);
    for (const auto& [name, value] : attributes)
      node.message(5, Message().text(1, name).number(3, value).number(20, 2));
    return node;
  }
};

/// Writes a model to a file: its steps in the order in which they run, and what goes in and comes out.
inline void write_onnx(const std::string& path, const std::vector<OnnxNode>& nodes,
                       const std::vector<OnnxValue>& inputs, const std::vector<OnnxValue>& outputs) {
  Message graph;
  for (const OnnxNode& node : nodes) graph.message(1, node.message());
  graph.text(2, "graph");
  for (const OnnxValue& value : inputs) graph.message(11, value.message());
  for (const OnnxValue& value : outputs) graph.message(12, value.message());
  const Message model = Message().number(1, 8).message(7, graph).message(8, Message().number(2, 13));
  std::ofstream(path, std::ios::binary) << model.bytes();
}

}  // namespace fanout_test

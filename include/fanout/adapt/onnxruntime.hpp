// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onnxruntime_cxx_api.h>

#include <fanout/adapt/onnxruntime_port.hpp>
#include <fanout/array/output.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/base/error.hpp>
#include <fanout/context/context.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/memory/copy_bytes.hpp>
#include <fanout/model/factory.hpp>
#include <fanout/state/visit_state.hpp>
#include <fanout/tree/children.hpp>

namespace fanout { inline namespace v0 {

/// A session of ONNX Runtime as a model for host devices. Out is the tree of its outputs: a Tensor if the file has one
/// output, else a struct or `dict` whose members have the names of outputs, or a tuple in the file's order. Outputs
/// that it leaves out are not computed. `Mean<float>` and the like take an output of one number. Arguments are such
/// trees, too: arrays and numbers, by the names of the file's inputs or in its order.
///
///     struct Outputs {
///       fanout::Tensor<float, 2> scores;
///       fanout::Tensor<std::int64_t, 1> labels;
///     };
///     const Ort::Env env;
///     const fanout::ParallelModel digits{fanout::onnx_sessions<Outputs>(env, "digits.onnx"), fanout::host_devices()};
///     const Outputs all = digits(pixels);   // or dict("pixels"_k = pixels)
///
/// Inputs are read in place. An output is written in place if the file says its extents behind the rows, else copied.
/// `forward` is const, as sessions may run on many threads.
template <class Out>
class OnnxSession {
 public:
  /// Loads the file. Borrows the environment. Throws InvalidArgument if an output is not as Out says, and
  /// Ort::Exception if the file cannot be loaded.
  OnnxSession(const Ort::Env& env, const std::string& file, const Ort::SessionOptions& options)
      : session_(env, file.c_str(), options), inputs_(detail::onnx_inputs(session_)) {
    std::vector<detail::OnnxPort> ports = detail::onnx_outputs(session_);
    Out outputs{};
    visit_outputs(outputs, [&]<class X>(X&, std::string_view name) {
      const detail::OnnxPort& port = ports[detail::find_port(ports, name, "output", file)];
      if constexpr (detail::is_tensor<X>) {
        detail::check_port<typename X::value_type>(port, X::rank, "output", file);
      } else {
        detail::check_port<decltype(X::value)>(port, detail::OnnxPort::any_rank, "output", file);
      }
      outputs_.push_back(port);
    });
  }

  /// Runs the session on the shard's rows, and waits for it. Inputs have the extents that the file says, with the rows
  /// of the shard first. Throws InvalidArgument if inputs are not those of the file, or if an output has other rows.
  /// Throws Ort::Exception if the run fails.
  template <Context C, class... In>
  Out forward(C& ctx, const In&... in) const {
    std::vector<Ort::Value> values = detail::no_values(inputs_.size());
    std::size_t position = 0;
    (bind_inputs(in, sizeof...(In) == 1, position++, values), ...);
    detail::check_all_bound(values, inputs_);

    Out results{};
    std::vector<Ort::Value> written = detail::no_values(outputs_.size());
    bind_outputs(ctx, results, written);
    const std::vector<const char*> names = detail::names_of(inputs_);
    const std::vector<const char*> output_names = detail::names_of(outputs_);
    session_.Run(Ort::RunOptions{nullptr}, names.data(), values.data(), values.size(), output_names.data(),
                 written.data(), written.size());
    copy_others(ctx, results, written);
    return results;
  }

  /// The session, for what else it can do. Lives as long as this.
  Ort::Session& session() const noexcept { return session_; }

 private:
  template <class X, class F>
  static void visit_outputs(X& node, std::string& name, const F& f) {
    if constexpr (detail::is_tensor<X> || detail::is_reduced<X>) {
      f(node, name.empty() ? detail::single_name : std::string_view(name));
    } else {
      static_assert(detail::child_kind<X> == detail::ChildKind::fixed,
                    "fanout: the outputs of an OnnxSession are Tensors, numbers with a rule such as Mean<float>, or a "
                    "struct, dict or tuple of these (this diagnostic shows another type)");
      detail::visit_children<detail::WithPlaces>(node, LeafPath(""),
                                                 [&](auto& child, const LeafPath&, const auto& place) {
                                                   const detail::NameStep step(name);
                                                   step.add_place(place);
                                                   visit_outputs(child, name, f);
                                                 });
    }
  }
  template <class X, class F>
  static void visit_outputs(X& outputs, const F& f) {
    std::string name;
    visit_outputs(outputs, name, f);
  }

  /// Shows arrays and numbers of an argument as values for their inputs.
  template <class X>
  void bind_inputs(const X& argument, bool is_alone, std::size_t position, std::vector<Ort::Value>& values) const {
    std::string name;
    detail::visit_state<const std::byte>(argument, name, [&](const detail::StateLeaf<const std::byte>& leaf) {
      const bool is_unnamed = !is_alone && leaf.name == detail::single_name;
      const std::size_t i =
          detail::find_port(inputs_, is_unnamed ? std::to_string(position) : leaf.name, "input", "a call");
      values[i] = detail::onnx_value(leaf, inputs_[i]);
    });
  }

  /// True for an output that ONNX Runtime writes in place.
  template <class X>
  static bool is_bound(const detail::OnnxPort& port) noexcept {
    return detail::is_tensor<X> && port.has_row_size();
  }

  template <class C>
  void bind_outputs(C& ctx, Out& results, std::vector<Ort::Value>& written) const {
    std::size_t i = 0;
    visit_outputs(results, [&]<class X>([[maybe_unused]] X& result, std::string_view) {
      const detail::OnnxPort& port = outputs_[i];
      [[maybe_unused]] Ort::Value& value = written[i++];
      if constexpr (detail::is_tensor<X>) {
        if (!is_bound<X>(port)) return;
        const auto rows = detail::onnx_rows<typename X::value_type, X::rank>(ctx, port.shape);
        value = detail::onnx_value(rows);
        result = rows;
      }
    });
  }

  /// Takes what ONNX Runtime has written to memory of its own.
  template <class C>
  void copy_others(C& ctx, Out& results, const std::vector<Ort::Value>& written) const {
    std::size_t i = 0;
    visit_outputs(results, [&]<class X>(X& result, std::string_view) {
      const detail::OnnxPort& port = outputs_[i];
      const Ort::Value& value = written[i++];
      if (is_bound<X>(port)) return;
      if constexpr (detail::is_tensor<X>) {
        result = detail::copied_rows<typename X::value_type, X::rank>(ctx, value, port);
      } else {
        result.value = detail::onnx_number<decltype(X::value)>(value, port.name);
      }
    });
  }

  mutable Ort::Session session_;  // Run() is thread-safe, but not const
  std::vector<detail::OnnxPort> inputs_;
  std::vector<detail::OnnxPort> outputs_;  // in the order of Out
};

/// A factory of sessions, one on each device, each with one thread unless the options say otherwise. Borrows the
/// environment, which must outlive the model. The constructor of the model throws FactoryError if one cannot be made.
template <class Out>
auto onnx_sessions(const Ort::Env& env, std::string file, Ort::SessionOptions options) {
  return factory(
      [&env, file = std::move(file), options = std::move(options)] { return OnnxSession<Out>(env, file, options); });
}
template <class Out>
auto onnx_sessions(const Ort::Env& env, std::string file) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);  // each device has a core
  return onnx_sessions<Out>(env, std::move(file), std::move(options));
}

}}  // namespace fanout::v0

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/adapt/torch.hpp>  // brings libtorch, whose CHECK is not the one that is meant below

#include <ATen/DLConvertor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#undef CHECK
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fanout/adapt/dlpack.hpp>
#include <fanout/fanout.hpp>
#include <fanout/stages.hpp>
#include <support/message_of.hpp>
#include <support/thread_ranks.hpp>

namespace {

using fanout::host_devices;
using fanout::ParallelModel;
using fanout::TorchModel;
using torch::Tensor;
using Dict = c10::Dict<std::string, Tensor>;
using OrderedDict = torch::OrderedDict<std::string, Tensor>;
using List = c10::List<Tensor>;

/// What no container of libtorch's own data_parallel may be.
struct Outputs {
  Tensor rows;
  std::vector<Tensor> layers;
  std::optional<Tensor> some;
  Dict dict;
  OrderedDict ordered;
  List list;
  std::unordered_map<std::string, Tensor> map;
};

struct NetImpl : torch::nn::Module {
  NetImpl() { register_module("linear", linear); }

  std::tuple<Tensor, Outputs, c10::optional<Tensor>> forward(const Tensor& x) {
    const Tensor y = linear(x);
    Outputs out{y.relu(), {y, y + 1}, y + 2, Dict(), OrderedDict(), List(), {{"a", y + 4}}};
    out.dict.insert("b", y + 5);
    out.dict.insert("c", y.sum(1));
    out.ordered.insert("z", y + 6);
    out.ordered.insert("d", y + 7);
    out.list.push_back(y + 8);
    return {y, out, y + 3};
  }

  torch::nn::Linear linear{3, 2};
};
TORCH_MODULE(Net);

bool close(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && torch::allclose(a, b); }

Tensor counted(std::int64_t rows, std::int64_t columns) {
  return torch::arange(rows * columns, torch::kFloat).reshape({rows, columns});
}

}  // namespace

TEST_CASE("a module that returns tuples, dicts and structs of tensors runs over host devices as it runs alone") {
  torch::manual_seed(1);
  Net net;
  const Tensor x = torch::rand({7, 3});
  const auto [y, expected, other] = net->forward(x);
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    const ParallelModel model{TorchModel{net}, host_devices(devices)};
    const auto [rows, out, optional] = model(x);
    static_assert(std::is_same_v<decltype(out), const Outputs>);
    CHECK(close(rows, y));
    CHECK(close(out.rows, expected.rows));
    CHECK(close(out.layers.at(1), y + 1));
    CHECK(close(out.some.value(), y + 2));
    CHECK(close(optional.value(), other.value()));
    CHECK(close(out.map.at("a"), y + 4));
    CHECK(close(out.dict.at("b"), y + 5));
    CHECK(close(out.dict.at("c"), y.sum(1)));
    CHECK(out.ordered.keys() == std::vector<std::string>{"z", "d"});
    CHECK(close(out.ordered["d"], y + 7));
    CHECK(close(out.list.get(0), y + 8));
  }
}

TEST_CASE("modules are shared, and gradients go through the gathered result to their parameters") {
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Linear(4, 1));
  const Tensor x = torch::rand({5, 3});
  net->forward(x).square().sum().backward();
  const Tensor alone = net->parameters()[0].grad().clone();
  net->zero_grad();
  const ParallelModel model{TorchModel{net}, host_devices(2)};
  CHECK(&model.model().module() == net.get());
  model(x).square().sum().backward();
  CHECK(close(net->parameters()[0].grad(), alone));
}

TEST_CASE("shards run in the calling thread's modes, and its modes stay as they were") {
  const auto linear = std::make_shared<torch::nn::LinearImpl>(3, 2);
  const ParallelModel model{TorchModel{linear}, host_devices(2)};
  const Tensor x = torch::rand({4, 3});
  CHECK(model(x).requires_grad());
  {
    const torch::NoGradGuard none;
    CHECK(!model(x).requires_grad());
  }
  {
    const c10::InferenceMode inference;
    const Tensor y = model(x);
    CHECK(y.is_inference());
    CHECK(model(y.expand({4, 2}).repeat({1, 2}).narrow(1, 0, 3)).is_inference());
  }
  {
    std::optional<torch::NoGradGuard> none(std::in_place);
    auto pending = model.async(x);
    none.reset();
    CHECK(!pending.get().requires_grad());
  }
  struct Changes {
    static fanout::TorchModes caller_state() { return {}; }
    Tensor forward(const Tensor& rows) const {
      torch::GradMode::set_enabled(false);
      return rows;
    }
  };
  CHECK(close(ParallelModel{Changes{}, host_devices(2)}(x), x));
  CHECK(torch::GradMode::is_enabled());
  CHECK(model(x).requires_grad());
}

TEST_CASE("a factory gives each device a clone, for a module that writes its members") {
  const torch::nn::BatchNorm1d norm(3);
  const auto clone = [&norm](const auto&) {
    return TorchModel{std::dynamic_pointer_cast<torch::nn::BatchNorm1dImpl>(norm->clone())};
  };
  const ParallelModel model{fanout::factory(clone), host_devices(2)};
  CHECK(model(torch::rand({6, 3})).size(0) == 6);
  CHECK(&model.replica(0).model().module() != &model.replica(1).model().module());
  CHECK(norm->named_buffers()["num_batches_tracked"].item<int>() == 0);
}

TEST_CASE("rows are passed without a copy, and results share memory with no input") {
  const Tensor x = counted(6, 2);
  for (const int devices : {1, 2}) {
    const ParallelModel model{[&x](const Tensor& rows) {
                                const bool in_place = rows.storage().data() == x.storage().data();
                                return std::tuple{rows, in_place, fanout::first(rows), fanout::psum(rows)};
                              },
                              host_devices(devices)};
    const auto [same, in_place, first, sum] = model(x);
    CHECK(in_place[0]);
    CHECK(torch::equal(same, x));
    for (const Tensor& result : {same, first, sum}) CHECK(result.storage().data() != x.storage().data());
  }
  const void* made = nullptr;
  const ParallelModel one{[&made](const Tensor& rows) {
                            Tensor result = rows + 1;
                            made = result.data_ptr();
                            return result;
                          },
                          host_devices(1)};
  CHECK(one(x).data_ptr() == made);
}

TEST_CASE("a tensor without axes becomes one value per shard, and rules combine tensors") {
  const Tensor x = counted(5, 2);
  const ParallelModel model{[](const Tensor& rows) {
                              const Tensor mean = rows.mean(0);
                              return std::tuple{
                                  rows.sum(),
                                  fanout::pmean(rows.mean()),
                                  fanout::psum(mean),
                                  fanout::pmax(mean),
                                  fanout::pmin(mean),
                                  fanout::first(rows.sum()),
                                  fanout::stack(mean),
                                  fanout::concat<1>(rows.t()),
                                  fanout::reduce(mean, [](const auto& a, const auto& b) { return a * b; })};
                            },
                            host_devices(2)};
  const auto [sums, mean, sum, greatest, least, first, stacked, columns, product] = model(x);
  CHECK(torch::equal(sums, torch::tensor({15.F, 30.F})));
  CHECK(close(mean, x.mean()));
  CHECK(torch::equal(sum, torch::tensor({9.F, 11.F})));
  CHECK(torch::equal(greatest, torch::tensor({7.F, 8.F})));
  CHECK(torch::equal(least, torch::tensor({2.F, 3.F})));
  CHECK(torch::equal(first, torch::tensor(15.F)));
  CHECK(torch::equal(stacked, torch::tensor({{2.F, 3.F}, {7.F, 8.F}})));
  CHECK(torch::equal(columns, x.t()));
  CHECK(torch::equal(product, torch::tensor({14.F, 24.F})));
}

TEST_CASE("tensors are split and concatenated on the chosen axis, and can stay sharded") {
  const Tensor x = counted(2, 5);
  const auto whole = [](const Tensor& part) { return std::tuple{fanout::concat<-1>(part), part.sum()}; };
  const ParallelModel model{whole, host_devices(2)};
  const auto [same, sums] = model(fanout::split<1>(x));
  CHECK(torch::equal(same, x));
  CHECK(torch::equal(sums, torch::tensor({21.F, 24.F})));
  CHECK_THROWS_WITH_AS(model(fanout::split<2>(x)),
                       doctest::Contains("an array has no such axis at input[0]: expected an axis from -2 to 1"),
                       fanout::ShapeMismatch);
  const ParallelModel columns{[](const Tensor& part) { return part + 1; }, host_devices(3), {.axis = 1}};
  CHECK(torch::equal(columns(x), x + 1));
  const ParallelModel leaves{[](const Tensor& rows) { return fanout::sharded(rows.sum()); }, host_devices(2)};
  CHECK(leaves(x)[1].dim() == 0);
}

TEST_CASE("containers of libtorch are split entry by entry") {
  Dict dict;
  dict.insert("x", counted(3, 2));
  dict.insert("y", counted(3, 1));
  const auto forward = [](const Dict& rows) { return rows.at("x") + rows.at("y"); };
  const ParallelModel model{forward, host_devices(2)};
  CHECK(torch::equal(model(dict), counted(3, 2) + counted(3, 1)));
  const ParallelModel same{[](const Dict& rows) {
                             return std::tuple{fanout::first(rows), fanout::psum(rows.at("x").sum())};
                           },
                           host_devices(2)};
  const auto [first, sum] = same(dict);
  CHECK(torch::equal(first.at("x"), counted(2, 2)));
  CHECK(sum.item<float>() == 15);
  dict.insert("z", counted(2, 1));
  CHECK_THROWS_WITH_AS(
      model(dict),
      "entries of one argument have different numbers of rows at input[0][\"z\"]: expected 3 as in those before, found "
      "2; pass broadcast(x) if every replica needs all of it",
      fanout::ShapeMismatch);
  dict.clear();
  CHECK_THROWS_AS(model(dict), fanout::ShapeMismatch);
}

TEST_CASE("tensors that cannot be split or gathered are refused with their place") {
  const ParallelModel same{[](const Tensor& x) { return x; }, host_devices(2)};
  CHECK_THROWS_WITH_AS(same(torch::tensor(1.F)),
                       "a torch::Tensor without rows cannot be split at input[0]: expected at least one axis, found "
                       "none; pass broadcast(x) if every replica needs all of it",
                       fanout::ShapeMismatch);
  CHECK_THROWS_AS(same(Tensor()), fanout::ShapeMismatch);
  CHECK(same(fanout::broadcast(torch::tensor(1.F))).size(0) == 1);

  struct Returns {
    int what;
    auto forward(const Tensor& x) const {
      const bool short_one = x.size(0) == 2;
      Tensor y = x;
      if (what == 1) y = x.t();
      if (what == 2 && short_one) y = x.to(torch::kLong);
      if (what == 3 && short_one) y = Tensor();
      Dict dict;
      dict.insert(what == 4 && short_one ? "other" : "key", y);
      return std::tuple{1, dict};
    }
  };
  const auto runs = [](int what) { return ParallelModel{Returns{what}, host_devices(2)}(counted(5, 1)); };
  CHECK_THROWS_WITH_AS(
      runs(1),
      "replicas returned arrays of different extents at output[1][\"key\"]: expected on all axes but 0 "
      "those of [1, 3] as from shard 0 on host:0, rows [0, 3), found [1, 2] from shard 1 on host:1, "
      "rows [3, 5); tensors are concatenated on axis 0, so all others must agree",
      fanout::ShapeMismatch);
  CHECK_THROWS_WITH_AS(
      runs(2),
      "replicas returned tensors of different types at output[1][\"key\"]: expected Float as from shard "
      "0 on host:0, rows [0, 3), found Long from shard 1 on host:1, rows [3, 5); return the same "
      "structure from every replica",
      fanout::StructureMismatch);
  CHECK_THROWS_AS(runs(3), fanout::StructureMismatch);
  CHECK_THROWS_WITH_AS(
      runs(4),
      "replicas returned different keys at output[1][\"key\"]: expected this one as from shard 0 on "
      "host:0, rows [0, 3), found others from shard 1 on host:1, rows [3, 5); return the same structure "
      "from every replica",
      fanout::StructureMismatch);
  const ParallelModel means{[](const Tensor& x) { return fanout::pmean(x.to(torch::kLong)); }, host_devices(2)};
  CHECK_THROWS_AS(means(counted(4, 1)), fanout::InvalidArgument);
  CHECK_THROWS_AS(TorchModel{Net(nullptr)}, fanout::InvalidArgument);
}

TEST_CASE("a mean of many half-precision blocks is exact to half precision") {
  const auto blocks = [](std::size_t rows, std::size_t) {
    fanout::Plan plan;
    for (std::size_t begin = 0; begin < rows; ++begin) plan.add({.rows = {begin, begin + 1}, .device = 0});
    if (rows == 0) plan.add({.rows = {0, 0}, .device = 0});
    return plan;
  };
  const ParallelModel model{[](fanout::RowRange) {
                              const Tensor ones = torch::ones({2}, torch::kHalf);
                              return std::tuple{fanout::pmean(ones), fanout::psum(ones)};
                            },
                            host_devices(1), fanout::Options{.split = blocks}};
  const auto [mean, sum] = model(fanout::Range{3000});
  CHECK((mean.scalar_type() == torch::kHalf));
  CHECK(mean[1].item<float>() == 1);
  CHECK(sum[1].item<float>() == 3000);
}

TEST_CASE("tensors of libtorch and of fanout convert to each other without a copy") {
  Tensor x = counted(3, 2);
  const fanout::View<float, 2> view = fanout::as_view<float, 2>(x);
  CHECK(view(2, 1) == 5);
  fanout::as_torch(view).fill_(9);
  CHECK(x[0][0].item<float>() == 9);
  fanout::Tensor<std::int64_t, 1> tensor(3);
  fanout::as_torch(tensor).fill_(2);
  CHECK(tensor[2] == 2);
  const Tensor there = fanout::to_torch(std::move(tensor));
  CHECK(torch::equal(there, torch::full({3}, 2, torch::kLong)));
  CHECK_THROWS_AS((fanout::as_view<float, 2>(x.t())), fanout::ShapeMismatch);
  CHECK_THROWS_AS((fanout::as_view<double, 2>(x)), fanout::InvalidArgument);
  CHECK_THROWS_AS((fanout::as_view<float, 2>(Tensor())), fanout::InvalidArgument);
}

TEST_CASE("a tensor of fanout that the host cannot use becomes no torch::Tensor, which would be on the CPU") {
  static constexpr fanout::backend::MemoryOperations operations = [] {
    fanout::backend::MemoryOperations own = fanout::backend::host_memory_operations;
    own.host_access = false;
    return own;
  }();
  fanout::backend::declare_memory("apart", operations);
  fanout::Tensor<float, 1> tensor({3}, {{{.kind = "apart"}}, &operations});
  CHECK_THROWS_AS(fanout::as_torch(tensor), fanout::DeviceMismatch);
  CHECK_THROWS_AS(fanout::to_torch(std::move(tensor)), fanout::DeviceMismatch);
}

TEST_CASE("DLPack carries tensors to libtorch and back") {
  fanout::Tensor<float, 2> tensor(3, 2);
  tensor(2, 1) = 4;
  const float* const data = tensor.data();
  {
    const Tensor there = at::fromDLPack(fanout::to_dlpack(std::move(tensor)));
    CHECK(there.data_ptr() == data);
    CHECK(there[2][1].item<float>() == 4);
  }
  Tensor x = counted(3, 2);
  const auto held = x.storage().use_count();
  {
    const auto back = fanout::from_dlpack<float, 2>(at::toDLPack(x));
    CHECK(back.data() == x.data_ptr());
    CHECK(x.storage().use_count() == held + 1);
  }
  CHECK(x.storage().use_count() == held);
  CHECK_THROWS_AS((fanout::from_dlpack<float, 2>(at::toDLPack(x.t()))), fanout::ShapeMismatch);
  CHECK_THROWS_AS((fanout::from_dlpack<int, 2>(at::toDLPack(x))), fanout::InvalidArgument);
  CHECK(x.storage().use_count() == held);
}

// What docs/guide/from_libtorch.md shows.
namespace {

// [cloneable]
struct NormedImpl : torch::nn::Cloneable<NormedImpl> {
  NormedImpl() { reset(); }
  void reset() override {
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    scores = register_module("scores", torch::nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) { return scores(norm(x)); }  // in training mode norm writes its statistics

  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear scores{nullptr};
};
TORCH_MODULE(Normed);
// [/cloneable]

// [modes]
struct Evaluate {
  torch::nn::Linear net;
  static fanout::TorchModes caller_state() { return {}; }  // forward runs in the modes of the thread that calls
  auto forward(const Tensor& x, const Tensor& labels) const {
    const Tensor scores = net.ptr()->forward(x);
    const Tensor error = (scores.amax(1) - labels).square().mean();
    return std::tuple{fanout::pmean(error), fanout::psum((scores.argmax(1) == labels).sum())};
  }
};
// [/modes]

}  // namespace

TEST_CASE("documentation: a clone for each device") {
  const Normed net;
  const Tensor x = torch::rand({6, 4});
  // [clones]
  const auto clone = [&net](const auto&) {
    return TorchModel{std::dynamic_pointer_cast<NormedImpl>(net->clone())};  // once for each device
  };
  const ParallelModel model{fanout::factory(clone), host_devices(2)};
  const Tensor y = model(x);
  const auto statistics = model.replica(0).model().module().norm->running_mean;  // of this device's rows
  // [/clones]
  CHECK(y.size(0) == 6);
  CHECK(close(statistics, 0.1 * x.narrow(0, 0, 3).mean(0)));
  CHECK(close(net->norm->running_mean, torch::zeros({4})));
}

TEST_CASE("documentation: the four functions over tensors") {
  const torch::nn::Linear net(3, 2);
  const Tensor x = torch::rand({5, 3});
  // [functions]
  const auto devices = host_devices(2);
  const auto replicas = fanout::replicate(TorchModel{net}, devices);
  const auto inputs = fanout::scatter(devices, x);
  const Tensor y = fanout::gather(fanout::apply(replicas, inputs));
  // [/functions]
  CHECK(close(y, net.ptr()->forward(x)));
}

TEST_CASE("documentation: modes of the thread that calls") {
  const torch::nn::Linear net(3, 2);
  const Tensor x = torch::rand({5, 3});
  const Tensor labels = torch::zeros({5}, torch::kLong);
  // [evaluate]
  const ParallelModel model{Evaluate{net}, host_devices(2)};
  const torch::NoGradGuard no_grad;                // for all devices
  const auto [error, correct] = model(x, labels);  // of all rows
  // [/evaluate]
  const Tensor scores = net.ptr()->forward(x);
  CHECK(!error.requires_grad());
  CHECK(close(error, scores.amax(1).square().mean()));
  CHECK(correct.item<long>() == (scores.argmax(1) == 0).sum().item<long>());
}

TEST_CASE("documentation: training") {
  torch::manual_seed(3);
  const torch::nn::Linear net(3, 1);
  const Tensor x = torch::rand({7, 3});
  const Tensor y = x.sum(1, true);
  Tensor loss;
  // [training]
  const ParallelModel model{TorchModel{net}, host_devices(2)};
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    loss = (model(x) - y).square().mean();
    loss.backward();   // to the parameters of `net`, which all devices share
    optimizer.step();  // between two calls
  }
  // [/training]
  CHECK(loss.item<float>() < 0.01F);
}

namespace {

/// A step on a shard of a regression by a shared module.
struct Regresses {
  std::shared_ptr<torch::nn::LinearImpl> net;

  static fanout::TorchModes caller_state() { return {}; }
  auto forward(const Tensor& x, const Tensor& y) const {
    const Tensor loss = (net->forward(x) - y).square().mean();
    return std::tuple{fanout::pmean(fanout::gradients(*net, loss)), fanout::pmean(loss.detach())};
  }
};

/// Rows from `begin` to `end` of numbers, and what a regression is to find.
std::pair<Tensor, Tensor> samples(std::int64_t begin, std::int64_t end) {
  const Tensor x = (torch::arange(39, torch::kDouble).reshape({13, 3}) * 0.7).sin().slice(0, begin, end);
  return {x, x.sum(1, true) + 1};
}

std::shared_ptr<torch::nn::LinearImpl> double_linear() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(3, 1);
  net->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : net->parameters()) parameter.fill_(0.25);
  return net;
}

}  // namespace

TEST_CASE("gradients of a shared module, computed on all devices, are those of the whole batch") {
  const auto net = double_linear();
  const auto [x, y] = samples(0, 13);
  const Tensor loss = (net->forward(x) - y).square().mean();
  loss.backward();
  const OrderedDict expected = fanout::gradients(*net);
  CHECK(expected.keys() == std::vector<std::string>{"weight", "bias"});
  CHECK(expected["weight"].is_same_size(net->weight));
  for (Tensor& parameter : net->parameters()) parameter.mutable_grad() = Tensor();
  for (const int devices : {1, 2, 3, 5}) {
    CAPTURE(devices);
    const auto [found, mean] = ParallelModel{Regresses{net}, host_devices(devices)}(x, y);
    CHECK(close(mean, loss.detach()));
    for (const auto& gradient : expected) CHECK(close(found[gradient.key()], gradient.value()));
  }
  for (const Tensor& parameter : net->parameters()) CHECK(!parameter.grad().defined());
}

TEST_CASE("an optimizer trains by the gradients of all devices and ranks as libtorch does alone") {
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.5);
  const auto net = double_linear();
  const auto [x, y] = samples(0, 13);
  torch::optim::SGD alone(net->parameters(), options);
  std::vector<double> expected;
  for (int step = 0; step < 20; ++step) {
    alone.zero_grad();
    const Tensor loss = (net->forward(x) - y).square().mean();
    loss.backward();
    alone.step();
    expected.push_back(loss.item<double>());
  }
  CHECK(expected.back() < expected.front() / 10);
  const auto check_trains = [&](const fanout::backend::ProcessRanks* ranks, const Tensor& own_x, const Tensor& own_y) {
    const auto own = double_linear();
    const ParallelModel model{Regresses{own}, host_devices(2), {.ranks = ranks}};
    torch::optim::SGD optimizer(own->parameters(), options);
    for (const double wanted : expected) {
      const auto [gradients, loss] = model(own_x, own_y);
      fanout::set_gradients(*own, gradients);
      optimizer.step();
      CHECK(loss.item<double>() == doctest::Approx(wanted).epsilon(1e-12));
    }
  };
  check_trains(nullptr, x, y);
  fanout_test::on_thread_ranks(3, [&](const fanout_test::ThreadRanks& ranks) {
    const std::int64_t cuts[] = {0, 7, 8, 13};
    const auto [own_x, own_y] = samples(cuts[ranks.rank()], cuts[ranks.rank() + 1]);
    check_trains(&ranks, own_x, own_y);
  });
}

TEST_CASE("tensors of all types of numbers are combined over ranks, also those whose elements are not contiguous") {
  fanout_test::on_thread_ranks(2, [](const fanout_test::ThreadRanks& ranks) {
    const auto one = static_cast<std::int64_t>(ranks.rank()) + 1;
    const ParallelModel model{[one](const Tensor&) {
                                Dict dict;
                                const Tensor turned = (torch::arange(6, torch::kFloat).reshape({2, 3}) * one).t();
                                dict.insert("t", one == 1 ? turned : turned.contiguous());  // other strides on a rank
                                return std::tuple{fanout::psum(dict), fanout::pmax(torch::tensor({one, -one})),
                                                  fanout::psum(torch::tensor(one, torch::kByte)),
                                                  fanout::pmin(torch::tensor(one == 1)), fanout::psum(Tensor())};
                              },
                              host_devices(1),
                              {.ranks = &ranks}};
    const auto [dict, greatest, bytes, all, none] = model(counted(2, 1));
    CHECK(torch::equal(dict.at("t"), (torch::arange(6, torch::kFloat).reshape({2, 3}) * 3).t()));
    CHECK(torch::equal(greatest, torch::tensor({std::int64_t{2}, std::int64_t{-1}})));
    CHECK(bytes.item<int>() == 3);
    CHECK(!all.item<bool>());
    CHECK(!none.defined());
  });
}

TEST_CASE("tensors that cannot be combined over ranks are refused") {
  fanout_test::on_thread_ranks(2, [](const fanout_test::ThreadRanks& ranks) {
    const auto text_of = [&ranks](const auto& forward) {
      const ParallelModel model{forward, host_devices(1), {.ranks = &ranks}};
      return fanout_test::message_of<fanout::Error>([&] { model(counted(2, 1)); });
    };
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    CHECK(has(text_of([](const Tensor& x) { return fanout::psum(x.to(torch::kHalf)); }), "found Half"));
    CHECK(has(text_of([](const Tensor& x) { return fanout::psum(x.sum().set_requires_grad(true)); }),
              "can be differentiated is combined over ranks at output"));
  });
}

TEST_CASE("gradients that do not fit the module are refused, and none is set") {
  const auto net = double_linear();
  const auto [x, y] = samples(0, 4);
  const OrderedDict good = fanout::gradients(*net, (net->forward(x) - y).square().mean());
  OrderedDict bad = good;
  bad["bias"] = torch::zeros({2}, torch::kDouble);
  CHECK_THROWS_WITH_AS(fanout::set_gradients(*net, bad),
                       "a gradient does not fit its parameter at bias: expected [1], found [2]", fanout::ShapeMismatch);
  OrderedDict few;
  few.insert("weight", good["weight"]);
  CHECK_THROWS_WITH_AS(fanout::set_gradients(*net, few),
                       "a parameter has no gradient at bias; pass what gradients() of the same module returned",
                       fanout::StructureMismatch);
  OrderedDict many = good;
  many.insert("more", good["bias"]);
  CHECK_THROWS_AS(fanout::set_gradients(*net, many), fanout::StructureMismatch);
  for (const Tensor& parameter : net->parameters()) CHECK(!parameter.grad().defined());
  fanout::set_gradients(*net, good);
  CHECK(close(net->weight.grad(), good["weight"]));

  CHECK_THROWS_WITH_AS(fanout::gradients(*net, torch::tensor(1.0)),
                       "a loss that has no gradients at gradients: expected a tensor with one element, computed from "
                       "parameters of the module, found a tensor without a graph",
                       fanout::InvalidArgument);
  CHECK_THROWS_AS(fanout::gradients(*net, net->forward(x)), fanout::InvalidArgument);
  net->bias.set_requires_grad(false);
  CHECK(fanout::gradients(*net, net->forward(x).sum()).keys() == std::vector<std::string>{"weight"});
}

TEST_CASE("a parameter that a loss does not depend on has gradients of zero") {
  torch::nn::Sequential net(torch::nn::Linear(3, 2), torch::nn::Linear(3, 1));
  const Tensor loss = net->ptr<torch::nn::LinearImpl>(0)->forward(torch::ones({1, 3})).sum();
  const OrderedDict found = fanout::gradients(*net, loss);
  CHECK(torch::equal(found["1.weight"], torch::zeros({1, 3})));
  CHECK(torch::equal(found["0.bias"], torch::ones({2})));
  CHECK(torch::equal(fanout::gradients(*net)["0.bias"], torch::zeros({2})));
}

namespace {

struct TanhLayerImpl : torch::nn::Module {
  TanhLayerImpl(int in, int out) : layer(in, out) {
    register_module("layer", layer);
    to(torch::kDouble);
  }
  Tensor forward(const Tensor& x) { return layer(x).tanh(); }
  torch::nn::Linear layer;
};
TORCH_MODULE(TanhLayer);

/// Two modules in stages, and copies of them that libtorch trains alone.
struct InStages {
  TanhLayer front{5, 8}, back{8, 3};
  TanhLayer front_alone{5, 8}, back_alone{8, 3};
  Tensor x = torch::rand({13, 5}, torch::kDouble);
  Tensor labels = torch::randint(0, 3, {13}, torch::kLong);

  InStages() {
    const torch::NoGradGuard no_grad;
    for (const auto& [from, to] : {std::pair{front, front_alone}, std::pair{back, back_alone}}) {
      to->layer->weight.copy_(from->layer->weight), to->layer->bias.copy_(from->layer->bias);
    }
  }
};

}  // namespace

TEST_CASE("modules in stages are trained by their own autograd and optimizer") {
  torch::manual_seed(3);
  InStages with;
  auto& [front, back, front_alone, back_alone, x, labels] = with;
  const auto parameters_of = [](const TanhLayer& first, const TanhLayer& second) {
    std::vector<Tensor> all = first->parameters();
    for (const Tensor& parameter : second->parameters()) all.push_back(parameter);
    return all;
  };
  torch::optim::SGD optimizer(parameters_of(front, back), torch::optim::SGDOptions(0.5).momentum(0.9));
  torch::optim::SGD alone(parameters_of(front_alone, back_alone), torch::optim::SGDOptions(0.5).momentum(0.9));
  // [stages]
  // The mean loss of these rows, and the gradient of each row's own loss.
  const auto loss = [](const Tensor& y, const Tensor& t) {
    const Tensor leaf = y.detach().requires_grad_();
    const Tensor value = torch::cross_entropy_loss(leaf, t);
    value.backward();
    return std::pair{fanout::pmean(value.detach()), leaf.grad() * y.size(0)};
  };
  const fanout::Pipeline net{fanout::stage(TorchModel{front}, host_devices(1)),
                             fanout::stage(TorchModel{back}, host_devices(2))};
  // [/stages]
  for (int step = 0; step < 20; ++step) {
    alone.zero_grad();
    const Tensor wanted = torch::cross_entropy_loss(back_alone(front_alone(x)), labels);
    wanted.backward();
    alone.step();
    // [stages step]
    const auto [value, gradients] = net.train(x, labels, loss);
    fanout::set_gradients(*front, std::get<0>(gradients));
    fanout::set_gradients(*back, std::get<1>(gradients));
    optimizer.step();
    // [/stages step]
    CHECK(value.item<double>() == doctest::Approx(wanted.item<double>()).epsilon(1e-12));
  }
  CHECK(torch::allclose(front->layer->weight, front_alone->layer->weight, 1e-10));
  CHECK(torch::allclose(net(x), back_alone(front_alone(x)), 1e-10));
  CHECK(net(x).requires_grad());  // outside of training, as of the modules alone
}

TEST_CASE("a stage takes integers, and a module without parameters has no gradients") {
  struct Lookup : torch::nn::Module {
    Tensor table = torch::rand({4, 3}, torch::kDouble);
    Tensor forward(const Tensor& x) { return table.index({x}); }
  };
  torch::manual_seed(4);
  TanhLayer back(3, 2);
  const auto loss = [](const Tensor& y, const Tensor&) {
    return std::pair{fanout::psum(y.sum()), torch::ones_like(y)};
  };
  const fanout::Pipeline net{fanout::stage(TorchModel{std::make_shared<Lookup>()}, host_devices(1)),
                             fanout::stage(TorchModel{back}, host_devices(1))};
  const auto [sum, gradients] = net.train(torch::tensor({0, 3, 1, 1, 2}, torch::kLong), torch::zeros({5}), loss);
  CHECK(std::get<0>(gradients).is_empty());
  CHECK(std::get<1>(gradients).size() == 2);
  CHECK(sum.item<double>() != 0);
}

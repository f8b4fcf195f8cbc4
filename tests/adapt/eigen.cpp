// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/adapt/eigen.hpp>
#include <fanout/fanout.hpp>
#include <support/thread_ranks.hpp>

namespace {

using namespace fanout::literals;
using Eigen::Dynamic;
using fanout::ArrayLeaf;
using fanout::EigenRows;
using fanout::HasArrayLeaf;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::View;

using RowMajor = Eigen::Matrix<float, Dynamic, Dynamic, Eigen::RowMajor>;
using ColMajor = Eigen::Matrix<float, Dynamic, Dynamic>;
using ThreeColumns = Eigen::Matrix<double, Dynamic, 3>;

static_assert(ArrayLeaf<RowMajor> && ArrayLeaf<ColMajor> && ArrayLeaf<ThreeColumns> && ArrayLeaf<Eigen::VectorXi>);
static_assert(ArrayLeaf<Eigen::ArrayXXf> && ArrayLeaf<Eigen::Map<const ColMajor>> && ArrayLeaf<Eigen::Ref<RowMajor>>);
static_assert(ArrayLeaf<decltype(std::declval<ColMajor&>().transpose())>, "it lies in memory too");
static_assert(!HasArrayLeaf<Eigen::Matrix3f> && !HasArrayLeaf<Eigen::RowVectorXf>, "a parameter, not a batch");

template <class M>
M numbers(Eigen::Index rows, Eigen::Index columns) {
  M matrix(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < columns; ++j) matrix(i, j) = static_cast<typename M::Scalar>(10 * i + j);
  }
  return matrix;
}

constexpr auto twice = [](const auto& x) { return (2 * x).eval(); };

/// Every range of rows is shown in place, and two that follow each other are put together to what they were.
template <class X>
void shows_rows(const X& x) {
  using Traits = fanout::leaf_traits<X>;
  const auto rows = Traits::rows(x);
  CHECK(rows == static_cast<std::size_t>(x.rows()));
  for (std::size_t begin = 0; begin <= rows; ++begin) {
    const EigenRows<X> head = Traits::piece(x, 0, begin);
    const EigenRows<X> tail = Traits::piece(x, begin, rows);
    CHECK(head == x.topRows(head.rows()));
    CHECK(tail == x.bottomRows(tail.rows()));
    if (tail.size() != 0) CHECK(tail.data() == &x.coeffRef(static_cast<Eigen::Index>(begin), 0));
    fanout::ShardResults<EigenRows<X>> pieces(2, false);
    pieces.set(0, head);
    pieces.set(1, tail);
    const fanout::Plan plan = fanout::EvenSplit{}(rows, 2);
    const std::array devices{fanout::DeviceId{"host", 0}, fanout::DeviceId{"host", 1}};
    CHECK(fanout::gather(pieces, {plan, devices.data(), {}}) == x);
  }
}

}  // namespace

TEST_CASE("matrices of either order are split over any number of devices, and put together") {
  const RowMajor rows = numbers<RowMajor>(7, 3);
  const ColMajor columns = numbers<ColMajor>(7, 3);
  for (const int devices : {1, 2, 3}) {
    CAPTURE(devices);
    const ParallelModel model{[](const EigenRows<RowMajor>& x, const EigenRows<ColMajor>& y) {
                                return std::tuple{twice(x), y, (x + y).eval()};
                              },
                              host_devices(devices)};
    const auto [doubled, same, sum] = model(rows, columns);
    static_assert(std::is_same_v<decltype(doubled), const RowMajor> && std::is_same_v<decltype(same), const ColMajor>);
    CHECK(doubled == 2 * rows);
    CHECK(same == columns);
    CHECK(sum == rows + columns);
  }
}

TEST_CASE("arrays, vectors, maps, references, blocks and transposes are split where they lie") {
  RowMajor rows = numbers<RowMajor>(8, 6);
  ColMajor columns = numbers<ColMajor>(8, 6);
  shows_rows(numbers<ThreeColumns>(5, 3));
  shows_rows(Eigen::VectorXi::LinSpaced(8, 1, 8).eval());
  shows_rows(rows.block(1, 2, 6, 3));
  shows_rows(columns.block(1, 2, 6, 3));
  shows_rows(columns.transpose());
  shows_rows(rows.col(2));
  shows_rows(Eigen::Ref<ColMajor>(columns));
  using EveryOther = Eigen::Map<const ColMajor, 0, Eigen::Stride<Dynamic, Dynamic>>;
  shows_rows(EveryOther(columns.data(), 4, 6, {8, 2}));
}

TEST_CASE("rows are not copied, and an Eigen::Ref takes them as they lie") {
  const ColMajor x = numbers<ColMajor>(6, 2);
  const ParallelModel model{[](Eigen::Ref<const ColMajor> rows) { return std::vector{rows.data()}; }, host_devices(2)};
  const auto begins = model(x);
  CHECK(begins[0] == x.data());
  CHECK(begins[1] == x.data() + 3);
  const Eigen::VectorXd y = Eigen::VectorXd::Zero(6);
  const ParallelModel of_vectors{[](Eigen::Ref<const Eigen::VectorXd> rows) { return std::vector{rows.data()}; },
                                 host_devices(2)};
  CHECK(of_vectors(y)[1] == y.data() + 3);
}

TEST_CASE("the matrix that the only shard returns is moved into the result") {
  const float* made = nullptr;
  const ParallelModel model{[&made](const EigenRows<ColMajor>& rows) {
                              ColMajor copy = rows;
                              made = copy.data();
                              return copy;
                            },
                            host_devices(1)};
  CHECK(model(numbers<ColMajor>(3, 2)).data() == made);
}

TEST_CASE("no rows keep their columns") {
  const ParallelModel model{[](const EigenRows<ColMajor>& rows) { return twice(rows); }, host_devices(2)};
  const ColMajor none = model(ColMajor(0, 4));
  CHECK(none.rows() == 0);
  CHECK(none.cols() == 4);
}

TEST_CASE("matrices are split inside trees, and a matrix with fixed rows goes whole to every replica") {
  const auto batch = fanout::dict("x"_k = numbers<RowMajor>(5, 2), "scale"_k = Eigen::RowVector2f(1, 100));
  const ParallelModel model{[](const auto& in) {
                              const auto& x = in["x"_k];
                              RowMajor scaled = x.array().rowwise() * in["scale"_k].array();
                              return fanout::dict("scaled"_k = scaled, "rows"_k = x.rows());
                            },
                            host_devices(2)};
  const auto out = model(batch);
  CHECK(out["scaled"_k].row(4) == Eigen::RowVector2f(40, 4100));
  CHECK(out["rows"_k][0] == 3);
}

TEST_CASE("a vector of points is split and put together") {
  const std::vector<Eigen::Vector2d> points{{1, 2}, {3, 4}, {5, 6}};
  const ParallelModel model{[](std::span<const Eigen::Vector2d> some) {
                              return std::tuple{some, std::vector<Eigen::Vector2d>(some.size(), some[0])};
                            },
                            host_devices(2)};
  const auto [same, firsts] = model(points);
  CHECK(same == points);
  CHECK(firsts[1] == points[0]);
  CHECK(firsts[2] == points[2]);
}

TEST_CASE("psum and its kin combine matrices coefficient by coefficient, and first takes one") {
  const ThreeColumns x = numbers<ThreeColumns>(6, 3);
  const ParallelModel model{[](const EigenRows<ThreeColumns>& rows) {
                              const Eigen::Matrix3d gram = rows.transpose() * rows;
                              const Eigen::RowVectorXd mean = rows.colwise().mean();
                              return std::tuple{fanout::psum(gram), fanout::pmean(mean),
                                                fanout::pmax(rows.topRows(1).eval()), fanout::first(mean),
                                                fanout::first(rows)};
                            },
                            host_devices(2)};
  const auto [gram, mean, greatest, first, first_rows] = model(x);
  CHECK(gram.isApprox(Eigen::Matrix3d(x.transpose() * x)));
  CHECK(mean.isApprox(Eigen::RowVectorXd(x.colwise().mean())));
  CHECK(greatest == x.row(3));
  CHECK(first == x.row(1));
  CHECK(first_rows == x.topRows(3));
}

TEST_CASE("matrices that do not fit together are refused with the place, the shard and the columns") {
  const ParallelModel model{[](const EigenRows<ColMajor>& rows) {
                              return std::tuple{1, ColMajor(numbers<ColMajor>(2, rows.rows()))};
                            },
                            host_devices(2)};
  CHECK_THROWS_WITH_AS(model(ColMajor(5, 1)),
                       "replicas returned arrays of different extents at output[1]: expected 3 columns as from shard 0 "
                       "on host:0, rows [0, 3), found 2 from shard 1 on host:1, rows [3, 5); matrices are concatenated "
                       "by rows, so their columns must agree",
                       fanout::ShapeMismatch);
  const ParallelModel sum{[](const EigenRows<ColMajor>& rows) { return fanout::psum(ColMajor(rows)); },
                          host_devices(2)};
  CHECK_THROWS_WITH_AS(sum(ColMajor(5, 1)),
                       "replicas returned arrays of different extents at output: expected [3, 1] as from shard 0 on "
                       "host:0, rows [0, 3), found [2, 1] from shard 1 on host:1, rows [3, 5); psum needs matrices of "
                       "the same extents from every replica",
                       fanout::ShapeMismatch);
}

TEST_CASE("a matrix is shown as a View, and a View as a matrix") {
  RowMajor matrix = numbers<RowMajor>(3, 2);
  const View<float, 2> view = fanout::as_view(matrix);
  CHECK(view.data() == matrix.data());
  CHECK(view(2, 1) == 21);
  fanout::as_eigen(view)(2, 1) = 5;
  CHECK(matrix(2, 1) == 5);

  const ColMajor columns = numbers<ColMajor>(3, 2);
  const View<const float, 2> transposed = fanout::as_view(columns.transpose());
  CHECK(transposed(1, 2) == 21);
  const Eigen::VectorXd vector = Eigen::VectorXd::LinSpaced(3, 0, 2);
  const View<const double, 1> elements = fanout::as_view(vector);
  CHECK(elements[2] == 2);
  CHECK(fanout::as_eigen(elements) == vector);

  CHECK(fanout::as_view(matrix.topRows(2)).extent(0) == 2);
  CHECK_THROWS_WITH_AS(fanout::as_view(matrix.leftCols(1).topRows(2).middleCols<Dynamic>(0, 1)),
                       "a view of a part of a matrix: expected rows that follow each other without gaps, found strides "
                       "of 2 and 1 for 1 columns; copy it with .eval() first",
                       fanout::ShapeMismatch);
}

TEST_CASE("Eigen computes into the gathered result") {
  const RowMajor x = numbers<RowMajor>(5, 3);
  const RowMajor weight = numbers<RowMajor>(3, 2);
  const ParallelModel model{[&weight](fanout::Context auto& ctx, const EigenRows<RowMajor>& rows) {
                              auto output = fanout::output<float>(ctx, weight.cols());
                              fanout::as_eigen(output).noalias() = rows * weight;
                              return output;
                            },
                            host_devices(2)};
  const fanout::Tensor<float, 2> product = model(x);
  CHECK(fanout::as_eigen(product).isApprox(x * weight));
}

TEST_CASE("a result that overlaps an input matrix is refused, whatever its strides") {
  RowMajor matrix = RowMajor::Zero(4, 3);
  const View<float, 1> last(matrix.data() + 9, 3);
  const ParallelModel model{[](fanout::Context auto& ctx, const auto&...) { return fanout::output<float>(ctx); },
                            host_devices(2)};
  const std::vector<float> rows(3);
  CHECK_THROWS_AS(model.into(last)(rows, fanout::broadcast(matrix)), fanout::InvalidArgument);
  const Eigen::Ref<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>> middle = matrix.middleCols(1, 1);
  CHECK_THROWS_AS(model.into(last)(rows, fanout::broadcast(middle)), fanout::InvalidArgument);
  CHECK_NOTHROW(model.into(View<float, 1>(matrix.data() + 11, 1))(std::vector<float>(1), fanout::broadcast(middle)));
}

TEST_CASE("a mean of many small blocks is as exact as its elements") {
  const auto blocks = [](std::size_t rows, std::size_t) {
    fanout::Plan plan;
    for (std::size_t begin = 0; begin < rows; ++begin) plan.add({.rows = {begin, begin + 1}, .device = 0});
    if (rows == 0) plan.add({.rows = {0, 0}, .device = 0});
    return plan;
  };
  const ParallelModel model{[](fanout::RowRange) {
                              const RowMajor tenths = RowMajor::Constant(2, 2, 0.1F);
                              return std::tuple{fanout::pmean(tenths), fanout::psum(tenths)};
                            },
                            host_devices(1), fanout::Options{.split = blocks}};
  const auto [mean, sum] = model(fanout::Range{100'000});
  CHECK(mean(1, 1) == 0.1F);
  CHECK(sum(1, 1) == static_cast<float>(1e5 * static_cast<double>(0.1F)));
}

TEST_CASE("matrices are combined over ranks, too") {
  fanout_test::on_thread_ranks(2, [](const fanout_test::ThreadRanks& ranks) {
    const ParallelModel model{
        [](std::span<const double> x) {
          Eigen::Matrix2d matrix = Eigen::Matrix2d::Constant(static_cast<double>(x.size()));
          matrix(0, 1) = 0.5;
          return std::tuple{fanout::psum(matrix), fanout::pmean(Eigen::VectorXd(Eigen::VectorXd::Constant(3, x[0])))};
        },
        host_devices(2),
        {.ranks = &ranks}};
    const double value = ranks.rank() == 0 ? 1 : 4;
    const auto [sum, mean] = model(std::vector<double>(ranks.rank() == 0 ? 2 : 4, value));
    CHECK(sum(1, 0) == 6);
    CHECK(sum(0, 1) == 2);
    CHECK(mean(2) == doctest::Approx(3));
  });
}

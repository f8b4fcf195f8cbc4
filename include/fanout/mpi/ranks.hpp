// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/collective/step_deadline.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/mpi/attachments.hpp>
#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/mpi/group/messages.hpp>
#include <fanout/mpi/group/mpi_error.hpp>
#include <fanout/mpi/group/mpi_mail.hpp>
#include <fanout/mpi/group/rank_group.hpp>
#include <fanout/mpi/node_share.hpp>
#include <fanout/mpi/ranked_tree.hpp>
#include <fanout/mpi/ranks_of_models.hpp>
#include <fanout/mpi/ranks_options.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

class NcclOfRanks;

}  // namespace detail

namespace mpi {

/// The ranks of an MPI program, each a process with devices of its own:
///
///     MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
///     {
///       const fanout::mpi::Ranks ranks{MPI_COMM_WORLD};
///       const fanout::ParallelModel model{Network(), ranks.devices<fanout::HostDevice>()};
///       const auto mine = ranks.scatter(images, 0);          // rank 0 has the batch; each rank gets its rows
///       const auto all = ranks.gather(model(mine), 0);       // and rank 0 the scores of all rows
///     }
///     MPI_Finalize();
///
/// fanout neither initialises nor finalises MPI. It uses a duplicate of the communicator, so its messages and its
/// error handler are not the user's. The first Ranks of a communicator makes a second one, for calls with a
/// deadline. It is an attribute of the user's communicator, and never freed. The thread level must be
/// MPI_THREAD_FUNNELED or higher. At that level, only the main thread may call functions that exchange messages; at
/// a higher level, any thread may. A call on a wrong thread throws Error there, and the other ranks wait: that
/// thread may not tell them.
///
/// All ranks call the functions that exchange messages, in the same order. If one of them fails in such a function, or
/// calls another one, all ranks throw. If a rank was late for a deadline, all functions that exchange messages throw
/// Error from then on, and so do calls of models: make new Ranks on all ranks. Destroy it before MPI_Finalize(). It
/// does nothing if it is destroyed later.
class Ranks {
 public:
  /// Duplicates the communicator. All its ranks must do this, with the same options. Throws Error if MPI is not
  /// initialised, has been finalised, or allows only one thread. Throws InvalidArgument for MPI_COMM_NULL and an
  /// intercommunicator. A rank whose options are refused throws Error or InvalidArgument, and the others an Error that
  /// names it. Throws StructureMismatch on all ranks if their options differ. Throws MpiError.
  FANOUT_INLINE explicit Ranks(MPI_Comm of, const RanksOptions& options = {});
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// The position of this rank, and the number of ranks.
  std::size_t rank() const noexcept { return static_cast<std::size_t>(group_.rank()); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(group_.size()); }

  /// The ranks that are left after a RankLost, as new ranks in the same order: `const Ranks left = ranks.shrink();`.
  /// All of them call it, and it waits for all. These ranks are of no more use then, nor are models that have them in
  /// Options::ranks. `ParallelModel next{model.model(), left.devices<HostDevice>(), {.ranks = left}}` goes on with
  /// their model. Then `next.broadcast_from(0)` makes it the same everywhere, since the last call may have ended before
  /// the loss on some ranks only. Throws Error without RanksOptions::survive. Throws MpiError.
  Ranks shrink() const { return Ranks(*this, Shrunk{}); }

  /// These ranks for the models that they call together: `Options{.ranks = ranks}`. Valid as long as this.
  operator const backend::ProcessRanks*() const& noexcept { return &models_; }  // NOLINT(google-explicit-constructor)
  operator const backend::ProcessRanks*() const&& = delete;                     // NOLINT(google-explicit-constructor)

  /// This rank's rows of a batch of `all` rows. The sizes differ by at most one row, the larger ones first. With fewer
  /// rows than ranks, the last ranks have none. Exchanges no message.
  RowRange rows(std::size_t all) const noexcept { return rows_of(rank(), all); }

  /// This rank's devices: its share of the node. For HostDevice, `count` devices, or one for each core of the share.
  /// Ranks of a node that may run on the same cores share these out evenly, or the FANOUT_HOST_DEVICES devices that the
  /// environment asks for. For other kinds, `count` of the node's devices, or an equal share. With more ranks than
  /// devices, several ranks use one. Each process must see all devices of the node, or only its own one. Exchanges no
  /// message.
  ///
  /// Throws InvalidArgument if the rank is bound to fewer cores than the host devices that it asks for, and names the
  /// flag of mpirun that helps. Throws InvalidDeviceId if there is no such device.
  template <Device D>
  DeviceSet<D> devices(std::size_t count = 0) const {
    if constexpr (std::same_as<D, HostDevice>) {
      return node_.host_devices(count);
    } else {
      return node_.template devices<D>(count);
    }
  }

  /// The root gets one tree from the trees of all ranks, by the rules of gather(): arrays are concatenated by rows, in
  /// the order of the ranks, numbers are collected, and psum(x), pmean(x) and the other rules combine over the ranks. A
  /// mean is weighted by the rows of the rank's first array. The other ranks get std::nullopt. Arrays may be in any
  /// memory; the result is on the host. Waits for all ranks.
  ///
  /// On all ranks the tree has the same type, keys and lengths of lists. It holds tensors, views, vectors and spans of
  /// trivially copyable elements, and numbers. All ranks throw StructureMismatch if trees, functions or roots differ.
  /// If one rank fails, it throws its own exception, and the others an Error that names it. Throws ShapeMismatch on the
  /// root if extents do not fit together. Throws InvalidArgument on a rank that names a root that is no rank. Throws
  /// Timeout on all ranks if one has not come at RanksOptions::deadline. Throws MpiError.
  template <class X>
  std::optional<gathered_t<X>> gather(const X& tree, std::size_t root) const {
    static_assert(detail::holds_values<X>,
                  "fanout: ranks gather trees that hold values and views; this one holds references, for example from "
                  "std::tie: pass views, std::tuple{x.view(), y.view()}");
    if constexpr (detail::holds_values<X>) {
      return group_.guarded([&] { return gather_values(tree, root); });
    } else {
      return std::nullopt;
    }
  }

  /// Each rank gets its rows of the root's tree, by the rules of scatter(): arrays are split by rows(n), all else is
  /// sent whole, also broadcast(x). Views become tensors, spans become vectors. The trees of the other ranks show the
  /// structure only: they have the same type, keys and lengths of lists, and arrays of any extents. Waits for the root.
  /// Throws what gather() throws, and on the root what scatter() throws.
  template <class X>
  auto scatter(const X& tree, std::size_t root) const {
    return group_.guarded([&] { return scatter_values(tree, root); });
  }

 private:
  friend class detail::NcclOfRanks;

  struct Shrunk {};
  Ranks(const Ranks& of, Shrunk)
      : options_(of.options_),
        group_(of.group_.survivors()),
        node_(group_),
        models_(group_, options_, reduction_by_library()) {}

  /// The reduction of values by MPI.
  FANOUT_INLINE detail::RanksOfModels::ByLibrary reduction_by_library() const;

  FANOUT_INLINE static void check(const RanksOptions& options);

  RowRange rows_of(std::size_t rank, std::size_t all) const noexcept { return detail::EvenParts(all, size())[rank]; }

  FANOUT_INLINE void check_root(std::size_t root) const;

  /// Checks the root, calls `prepare`, and agrees with the other ranks on the call. Between two agreements nothing
  /// allocates, since the others wait for this rank.
  template <class X, class F>
  void begin(const char* name, const X& tree, const LeafPath& path, std::size_t root, const F& prepare) const {
    std::string call;
    const std::exception_ptr failure = detail::RankGroup::exception_of([&] {
      call = std::string(name) + " with root " + std::to_string(root) + " of ";
      detail::describe_structure(tree, path, call);
      check_root(root);
      prepare();
    });
    backend::StepDeadline deadline{.patience = options_.deadline};
    if (deadline.exists()) deadline.at = detail::Clock::after(options_.deadline);
    group_.agree(call, failure, deadline);
  }

  template <class X>
  auto scatter_values(const X& tree, std::size_t root) const {
    // A piece may hold references; what is received is made of values.
    using Owned = decltype(owned(std::declval<const std::remove_cvref_t<detail::piece_t<X>>&>()));
    const detail::RankGroup::Exchange exchange(group_);
    const LeafPath& path = detail::input_root;
    const bool is_root = rank() == root;

    // Of each rank on the root; of no rows elsewhere, where it shows the structure.
    std::vector<std::tuple<detail::piece_t<X>>> pieces;
    detail::Scratch packed;
    std::vector<detail::SentTree> sent;
    std::vector<std::uint64_t> all;  // extents
    std::vector<std::uint64_t> extents;
    begin("scatter", tree, path, root, [&] {
      const std::size_t rows = is_root ? fanout::batch_rows(tree).value_or(0) : 0;
      pieces.reserve(is_root ? size() : 1);
      if (is_root) sent.resize(size());
      for (std::size_t to = 0; to < (is_root ? size() : 1); ++to) {
        pieces.push_back(fanout::scatter(ScatterTarget{.rows = rows_of(to, rows), .scratch = &packed}, tree));
        if (is_root && to != root) sent[to].add(piece(pieces, to), path);
        for (const std::uint64_t extent : detail::extents_in(piece(pieces, to), path)) all.push_back(extent);
      }
      extents.resize(all.size() / pieces.size());
    });
    const int words = static_cast<int>(extents.size());
    detail::check_mpi(MPI_Scatter(all.data(), words, MPI_UINT64_T, extents.data(), words, MPI_UINT64_T,
                                  static_cast<int>(root), group_.get()),
                      "MPI_Scatter");

    std::optional<Owned> own;
    std::optional<detail::ReceivedTree<Owned>> received;
    detail::MessageBlocks arriving;
    std::optional<detail::Messages> messages;
    group_.agree(detail::RankGroup::exception_of([&] {
      messages.emplace(group_.mail(), size());
      if (is_root) {
        own.emplace(owned(piece(pieces, root)));
      } else {
        received.emplace(owned(piece(pieces, 0)), path, extents.data());
        arriving = received->blocks(path);
      }
    }));
    for (std::size_t to = 0; to < sent.size(); ++to) messages->send(sent[to].blocks, to, detail::MessageTag::trees);
    if (!is_root) messages->receive(arriving, root, detail::MessageTag::trees);
    messages->wait();
    return is_root ? std::move(*own) : received->take();
  }

  /// The rows of a tree, followed by its extents.
  template <class X>
  static std::vector<std::uint64_t> with_rows(const X& tree, const LeafPath& path) {
    std::vector<std::uint64_t> words = detail::extents_in(tree, path);
    words.insert(words.begin(), detail::rows_in(tree, path));
    return words;
  }

  template <class X>
  gathered_t<X> gather_received(const X& own, const std::list<detail::ReceivedTree<X>>& received,
                                const std::vector<std::uint64_t>& words) const {
    ShardResults<X> trees(size(), false);
    Plan plan;
    std::vector<DeviceId> ids;
    auto next = received.begin();
    for (std::size_t i = 0; i < size(); ++i) {
      trees.set(i, i == rank() ? own : (next++)->tree());
      const std::size_t begin = plan.rows();
      plan.add({.rows = {begin, begin + words[i * words.size() / size()]}, .device = i});
      ids.push_back({.kind = "rank", .index = static_cast<int>(i)});
    }
    return detail::gather_and_wait(trees, {.plan = plan,
                                           .devices = ids.data(),
                                           .target = {},
                                           .buffers_held = GatherTarget::by_others,
                                           .did = "gathered"});
  }

  template <class X>
  std::optional<gathered_t<X>> gather_values(const X& tree, std::size_t root) const {
    const detail::RankGroup::Exchange exchange(group_);
    const LeafPath& path = detail::output_root;
    const bool is_root = rank() == root;

    detail::SentTree sent;
    std::vector<std::uint64_t> extents;
    std::vector<std::uint64_t> all;
    begin("gather", tree, path, root, [&] {
      if (!is_root) sent.add(tree, path);
      extents = with_rows(tree, path);
      if (is_root) all.resize(extents.size() * size());
    });
    const int words = static_cast<int>(extents.size());
    detail::check_mpi(MPI_Gather(extents.data(), words, MPI_UINT64_T, all.data(), words, MPI_UINT64_T,
                                 static_cast<int>(root), group_.get()),
                      "MPI_Gather");

    std::list<detail::ReceivedTree<X>> received;
    std::vector<detail::MessageBlocks> arriving;
    std::optional<detail::Messages> messages;
    group_.agree(detail::RankGroup::exception_of([&] {
      messages.emplace(group_.mail(), size());
      for (std::size_t from = 0; is_root && from < size(); ++from) {
        if (from == root) continue;
        received.emplace_back(tree, path, all.data() + from * extents.size() + 1);
        arriving.push_back(received.back().blocks(path));
      }
    }));
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      messages->receive(arriving[i], i < root ? i : i + 1, detail::MessageTag::trees);
    }
    if (!is_root) messages->send(sent.blocks, root, detail::MessageTag::trees);
    messages->wait();

    std::optional<gathered_t<X>> result;
    group_.agree(detail::RankGroup::exception_of([&] {
      if (is_root) result.emplace(gather_received(tree, received, all));
    }));
    return result;
  }

  template <class P>
  static const std::remove_cvref_t<P>& piece(const std::vector<std::tuple<P>>& pieces, std::size_t i) {
    return std::get<0>(pieces[i]);
  }

  /// A copy of a tree that owns its data.
  template <class X>
  static auto owned(const X& tree) {
    ShardResults<detail::WithRule<rules::First, X>> only(1, false);
    const detail::WithRule<rules::First, X> first{tree};
    only.set(0, first);
    const Plan plan{{.rows = {}, .device = 0}};
    const DeviceId id{.kind = "rank", .index = 0};
    return detail::gather_and_wait(
        only, {.plan = plan, .devices = &id, .target = {}, .buffers_held = GatherTarget::by_others});
  }

  const RanksOptions options_;
  const detail::MpiGroup group_;
  const detail::NodeShare node_;
  const detail::RanksOfModels models_;
  const detail::Attachments attachments_;
};

}  // namespace mpi

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/mpi/ranks.ipp>
#endif

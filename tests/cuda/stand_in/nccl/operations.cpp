// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks ask for, alone or in groups.
#include <cstring>

#include "../cudart/hooks.hpp"
#include "../cudart/order.hpp"
#include "communicator.hpp"

namespace stand_in_nccl {
namespace {

struct Asked {
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<Operation> operations;  ///< one, or all that a rank sends and receives in a group
};

/// What one thread has asked for since it began its group.
struct Group {
  int depth = 0;
  ncclResult_t result = ncclSuccess;
  std::vector<Asked> asked;
  std::vector<Join> joins;
  std::vector<ncclComm_t> aborts;
};

Group& group() {
  static thread_local Group mine;
  return mine;
}

struct Work {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::uint64_t number = 0;
  std::vector<Operation> operations;
};

/// By the stream's thread.
void work(void* data) {
  auto* const mine = static_cast<Work*>(data);
  if (mine->number == 0) {
    mine->clique->point_to_point(mine->rank, mine->operations);
  } else {
    mine->clique->collective(mine->rank, mine->number, mine->operations[0]);
  }
}

void release(void* data) { delete static_cast<Work*>(data); }

ncclResult_t launch(const Asked& asked) {
  auto* const comm = asked.comm;
  const auto* const name = asked.operations[0].name;
  std::vector<int> devices;
  // Of this process only: NCCL copies to and from others.
  const bool among_processes = comm->clique->board() != nullptr;
  for (int rank = 0; rank < comm->clique->size(); ++rank) {
    const int device = comm->clique->at(rank).device;
    if (!among_processes || device >= 0) devices.push_back(device);
  }
  std::vector<stand_in_range> ranges;
  for (const auto& operation : asked.operations) {
    const std::size_t size = size_of(operation.type);
    const bool two = operation.is_point_to_point() && !among_processes;
    const int* const peers = devices.data() + (two ? operation.other : 0);
    const std::size_t count = two ? 1 : devices.size();
    ranges.push_back({operation.send, operation.send_count(comm->clique->size(), comm->rank) * size, peers, count});
    ranges.push_back({operation.recv, operation.recv_count(comm->clique->size(), comm->rank) * size, peers, count});
  }
  Work* made = nullptr;
  {
    const stand_in::Quiet quiet;
    made = new Work{comm->clique, comm->rank, 0, asked.operations};
    if (!asked.operations[0].is_point_to_point()) made->number = comm->next++;
  }
  const int code =
      stand_in_launch(name, comm, comm->device, asked.stream, ranges.data(), ranges.size(), work, release, made);
  if (code == cudaSuccess) return ncclSuccess;
  const stand_in::Quiet quiet;
  delete made;
  if (code != cudaErrorInvalidValue && code != cudaErrorInvalidResourceHandle) {
    return refuse(ncclUnhandledCudaError, "the device failed before");
  }
  return refuse(ncclInvalidArgument, "memory that is not there or is another device's, or such a stream");
}

/// At once, or when the communicator is next found to be ready.
ncclResult_t start_on(const Asked& asked) {
  if (asked.comm->blocking) return launch(asked);
  const stand_in::Quiet quiet;
  asked.comm->unready = looks_until_ready;
  asked.comm->starts = [before = std::move(asked.comm->starts), asked] {
    const auto result = before ? before() : ncclSuccess;
    return result == ncclSuccess ? launch(asked) : result;
  };
  return ncclInProgress;
}

ncclResult_t run_group(Group& mine) {
  auto result = mine.result;
  if (result == ncclSuccess && !mine.joins.empty()) result = join(mine.joins);
  for (const auto& asked : mine.asked) {
    if (result == ncclSuccess || result == ncclInProgress) result = start_on(asked);
  }
  for (const auto& asked : mine.asked) end_use(asked.comm);
  abort_all(mine.aborts);
  mine = {};
  return result;
}

/// If the rank made the reduction itself, replaces it by a sum and the factor that it was made with. Reports a
/// reduction that does not exist.
bool resolve(ncclComm_t comm, Operation& operation) {
  if (operation.reduction < ncclNumOps) return true;
  const auto index = static_cast<std::size_t>(operation.reduction - ncclNumOps);
  if (index >= comm->reductions.size() || !comm->reductions[index].alive) {
    stand_in_report(operation.name, "a reduction that is none of this communicator's");
    return false;
  }
  if (comm->reductions[index].type != operation.type) {
    stand_in_report(operation.name, "a reduction that was made for another type");
    return false;
  }
  operation.scale = comm->reductions[index].scale;
  operation.reduction = ncclSum;
  return true;
}

ncclResult_t ask(ncclComm_t comm, cudaStream_t stream, Operation operation) {
  const auto fail = [](ncclResult_t result) {
    if (in_group()) group().result = result;
    return result;
  };
  const auto code = enter(operation.name);
  if (code != ncclSuccess) return fail(code);
  if (!alive(operation.name, comm) || !ready(operation.name, comm)) return fail(ncclInvalidArgument);
  if (!resolve(comm, operation)) return fail(ncclInvalidArgument);
  if (!known(operation.type, operation.reduction)) {
    return fail(refuse(ncclInvalidArgument, "a type or a reduction that is none, or that the stand-in does not know"));
  }
  if (operation.other < -1 || operation.other >= comm->clique->size()) {
    return fail(refuse(ncclInvalidArgument, "there is no such rank"));
  }
  begin_use(operation.name, comm);
  start(comm, stream, operation);
  return in_group() ? ncclSuccess : run_group(group());
}

}  // namespace

bool in_group() { return group().depth > 0; }

void add_to_group(const Join& wanted) { group().joins.push_back(wanted); }

void add_abort_to_group(ncclComm_t comm) { group().aborts.push_back(comm); }

void start(ncclComm_t comm, cudaStream_t stream, const Operation& operation) {
  auto& asked = group().asked;
  if (operation.is_point_to_point()) {
    for (auto& earlier : asked) {
      if (earlier.comm != comm || earlier.stream != stream || !earlier.operations[0].is_point_to_point()) continue;
      earlier.operations.push_back(operation);
      return;
    }
  }
  asked.push_back({comm, stream, {operation}});
}

}  // namespace stand_in_nccl

using namespace stand_in_nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  const auto code = enter(__func__);
  if (code == ncclSuccess) ++group().depth;
  return code;
}

// Ends the group even where a failure is wanted; what was asked for in it is then not done.
ncclResult_t ncclGroupEnd() {
  const auto code = enter(__func__);
  auto& mine = group();
  if (mine.depth == 0) {
    stand_in_report(__func__, "there is no group");
    return ncclInvalidUsage;
  }
  if (code != ncclSuccess) mine.result = code;
  return --mine.depth > 0 ? code : run_group(mine);
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, recv, count, type, reduction, -1});
}

ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, recv, count, type, reduction, root});
}

// Of floats and doubles only, with a scalar of the host's.
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* reduction, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  const bool is_double = type == ncclFloat64;
  if (!alive(__func__, comm) || residence != ncclScalarHostImmediate || (!is_double && type != ncclFloat32)) {
    return refuse(ncclInvalidArgument, "a reduction that the stand-in does not know");
  }
  const double scale = is_double ? *static_cast<double*>(scalar) : static_cast<double>(*static_cast<float*>(scalar));
  const stand_in::Quiet quiet;
  comm->reductions.push_back({type, scale, true});
  *reduction = static_cast<ncclRedOp_t>(static_cast<std::size_t>(ncclNumOps) + comm->reductions.size() - 1);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t reduction, ncclComm_t comm) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  const auto index = static_cast<std::size_t>(reduction - ncclNumOps);
  if (!alive(__func__, comm) || reduction < ncclNumOps || index >= comm->reductions.size() ||
      !comm->reductions[index].alive) {
    stand_in_report(__func__, "a reduction that is none of this communicator's");
    return ncclInvalidArgument;
  }
  comm->reductions[index].alive = false;
  const stand_in::Quiet quiet;
  while (!comm->reductions.empty() && !comm->reductions.back().alive) comm->reductions.pop_back();
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, recv, count, type, ncclSum, root});
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, recv, count, type, ncclSum, -1});
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, recv, count, type, reduction, -1});
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask(comm, stream, {__func__, send, nullptr, count, type, ncclSum, peer});
}

ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return ask(comm, stream, {__func__, nullptr, recv, count, type, ncclSum, peer});
}

}  // extern "C"

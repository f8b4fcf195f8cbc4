// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators come and go.
#include "communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "../cudart/hooks.hpp"
#include "../cudart/order.hpp"

namespace stand_in_nccl {
namespace {

/// The ranks that have come so far for a unique id.
struct Gathering {
  std::shared_ptr<Clique> clique;
  std::vector<int> devices;
  int missing = 0;
  bool refused = false;
};

struct Everything {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned next = 1;
  std::map<std::string, std::shared_ptr<Gathering>> gatherings;
  std::set<ncclComm_t> alive;
  std::string last_error;
};

/// Never destroyed.
Everything& everything() {
  static Everything* const made = new Everything;
  return *made;
}

/// The books are no order between the threads that make entries.
struct Books {
  stand_in::Quiet quiet;
  Everything& all = everything();
  std::unique_lock<std::mutex> lock{all.mutex};
};

ncclComm_t make(const std::shared_ptr<Clique>& clique, const Join& wanted) {
  const Books books;
  auto* const comm = new ncclComm;
  comm->clique = clique;
  comm->rank = wanted.rank;
  comm->device = wanted.device;
  comm->blocking = wanted.blocking;
  if (!wanted.blocking) comm->unready = looks_until_ready;
  books.all.alive.insert(comm);
  return comm;
}

/// Behind the number of an id is the name of its board.
std::string board_of(const ncclUniqueId& id) { return id.internal + sizeof(unsigned); }

bool twice(std::vector<int> devices) {
  std::sort(devices.begin(), devices.end());
  return std::adjacent_find(devices.begin(), devices.end()) != devices.end();
}

std::shared_ptr<Gathering> come(Books& books, const Join& wanted) {
  auto& place = books.all.gatherings[wanted.id];
  if (!place) {
    unsigned number = 0;
    std::memcpy(&number, wanted.id.data(), sizeof number);
    place = std::make_shared<Gathering>();
    place->clique = std::make_shared<Clique>(number, wanted.ranks, Board::open(wanted.board));
    place->devices.assign(static_cast<std::size_t>(wanted.ranks), -1);
    place->missing = wanted.ranks;
  }
  auto gathering = place;
  auto& device = gathering->devices[static_cast<std::size_t>(wanted.rank)];
  if (gathering->clique->size() != wanted.ranks || device >= 0) {
    gathering->refused = true;
  } else {
    device = wanted.device;
    gathering->clique->at(wanted.rank).device = wanted.device;
    --gathering->missing;
  }
  if (gathering->missing == 0 && twice(gathering->devices)) gathering->refused = true;
  if (gathering->missing == 0) books.all.gatherings.erase(wanted.id);
  books.all.changed.notify_all();
  return gathering;
}

/// The device of a rank, as other processes know it.
std::string place_of(const Join& wanted) {
  char bus[64] = {};
  (void)cudaDeviceGetPCIBusId(bus, sizeof bus, wanted.device);
  return std::to_string(wanted.ranks) + " " + bus;
}

void post_join(const Join& wanted) {
  const auto board = Board::open(wanted.board);
  if (board != nullptr) board->post("join." + std::to_string(wanted.rank), place_of(wanted));
}

/// Waits for the ranks of all processes: "", "late", or "refused".
std::string meet_on_board(const Join& wanted) {
  const auto board = Board::open(wanted.board);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::set<std::string> places;
  for (int rank = 0; rank < wanted.ranks; ++rank) {
    const std::string note = "join." + std::to_string(rank);
    if (!board->await(note, [until] { return std::chrono::steady_clock::now() > until; })) return "late";
    places.insert(board->read(note));
  }
  return places.size() == static_cast<std::size_t>(wanted.ranks) && places.contains(place_of(wanted)) ? "" : "refused";
}

/// Real ones look at whose the device is that is current, and make its context.
ncclResult_t use_device(int& device) {
  if (cudaGetDevice(&device) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) return ncclUnhandledCudaError;
  return ncclSuccess;
}

void forget(ncclComm_t comm) {
  stand_in_add_alive("communicators", -1);
  const Books books;
  books.all.alive.erase(comm);
  delete comm;
}

/// Whether it may end: there is one, and no other thread uses it.
bool may_end(const char* name, ncclComm_t comm) {
  if (!alive(name, comm)) return false;
  bool used = false;
  {
    const Books books;
    used = comm->user != std::thread::id() && comm->user != std::this_thread::get_id();
  }
  if (used) stand_in_report(name, "another thread is using the communicator");
  return !used;
}

}  // namespace

ncclResult_t enter(const char* function) {
  const int code = stand_in_enter(function);
  if (code == 0) return ncclSuccess;
  return code < ncclNumResults ? static_cast<ncclResult_t>(code) : ncclUnhandledCudaError;
}

bool alive(const char* function, ncclComm_t comm) {
  {
    const Books books;
    if (books.all.alive.contains(comm)) return true;
  }
  stand_in_report(function, "there is no such communicator: it was destroyed, or is none");
  return false;
}

bool ready(const char* function, ncclComm_t comm) {
  {
    const Books books;
    if (comm->unready == 0) return true;
  }
  stand_in_report(function, "the communicator's last call is in progress: see ncclCommGetAsyncError");
  return false;
}

void begin_use(const char* function, ncclComm_t comm) {
  const auto self = std::this_thread::get_id();
  bool used = false;
  {
    const Books books;
    used = comm->user != std::thread::id() && comm->user != self;
    comm->user = self;
  }
  if (used) stand_in_report(function, "another thread is using the communicator");
}

void end_use(ncclComm_t comm) {
  const Books books;
  if (books.all.alive.contains(comm)) comm->user = {};
}

void abort_all(const std::vector<ncclComm_t>& comms) {
  {
    const stand_in::Quiet quiet;
    std::map<Clique*, std::vector<int>> ranks;
    for (auto* const comm : comms) ranks[comm->clique.get()].push_back(comm->rank);
    for (const auto& [clique, aborted] : ranks) clique->abort(aborted);
  }
  for (auto* const comm : comms) forget(comm);
}

void set_last_error(const std::string& what) {
  const Books books;
  books.all.last_error = what;
}

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  set_last_error(why);
  return result;
}

ncclResult_t join(const std::vector<Join>& wanted) {
  std::vector<std::shared_ptr<Gathering>> gatherings;
  bool all_came = true;
  bool refused = false;
  {
    Books books;
    for (const auto& one : wanted) gatherings.push_back(come(books, one));
  }
  for (const auto& one : wanted) post_join(one);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].board.empty()) continue;
    const std::string found = meet_on_board(wanted[i]);
    all_came = all_came && found != "late";
    refused = refused || found == "refused";
    const Books books;
    books.all.gatherings.erase(wanted[i].id);
    gatherings[i]->missing = 0;
  }
  {
    Books books;
    for (const auto& gathering : gatherings) {
      all_came = books.all.changed.wait_for(books.lock, std::chrono::seconds(20), [&] {
        return gathering->missing == 0 || gathering->refused;
      }) && all_came;
      refused = refused || gathering->refused;
    }
  }
  if (!all_came) {
    stand_in_report("ncclCommInitRank", "a rank does not come");
    return refuse(ncclSystemError, "a rank does not come");
  }
  if (refused) return refuse(ncclInvalidUsage, "Duplicate GPU detected, or a rank came twice");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    *wanted[i].out = make(gatherings[i]->clique, wanted[i]);
    stand_in_add_alive("communicators", 1);
  }
  const stand_in::Quiet quiet;
  gatherings.clear();
  return wanted[0].blocking ? ncclSuccess : ncclInProgress;
}

}  // namespace stand_in_nccl

using namespace stand_in_nccl;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto code = enter(__func__);
  if (code != ncclSuccess || id == nullptr) return code != ncclSuccess ? code : ncclInvalidArgument;
  const Books books;
  std::memset(id->internal, 0, sizeof id->internal);
  const unsigned number = books.all.next++;
  std::memcpy(id->internal, &number, sizeof number);
  const std::string board = Board::new_name();
  std::memcpy(id->internal + sizeof number, board.data(), board.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  if (out == nullptr || ranks < 1 || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, "a rank is from 0 to the number of ranks less 1");
  }
  const bool blocking = config == nullptr || config->blocking != 0;
  Join wanted{out, std::string(id.internal, sizeof id.internal), board_of(id), ranks, rank, 0, blocking};
  if (const auto used = use_device(wanted.device); used != ncclSuccess) return used;
  *out = nullptr;
  if (in_group()) {
    add_to_group(wanted);
    return ncclSuccess;
  }
  return join({wanted});
}

ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(out, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitAll(ncclComm_t* out, int count, const int* list) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  int there = 0, before = 0;
  if (cudaGetDeviceCount(&there) != cudaSuccess || cudaGetDevice(&before) != cudaSuccess) return ncclUnhandledCudaError;
  if (out == nullptr || count < 1) return refuse(ncclInvalidArgument, "there must be a device");
  std::vector<int> devices;
  for (int rank = 0; rank < count; ++rank) {
    devices.push_back(list == nullptr ? rank : list[rank]);
    if (devices.back() < 0 || devices.back() >= there) return refuse(ncclUnhandledCudaError, "invalid device ordinal");
  }
  if (twice(devices)) return refuse(ncclInvalidUsage, "Duplicate GPU detected");
  unsigned number = 0;
  {
    const Books books;
    number = books.all.next++;
  }
  std::vector<Join> wanted;
  auto result = ncclSuccess;
  for (int rank = 0; rank < count; ++rank) {
    const std::string id(reinterpret_cast<const char*>(&number), sizeof number);
    wanted.push_back({out + rank, id, "", count, rank, devices[static_cast<std::size_t>(rank)], true});
    int device = -1;
    if (cudaSetDevice(wanted.back().device) != cudaSuccess || use_device(device) != ncclSuccess) {
      result = ncclUnhandledCudaError;
    }
  }
  (void)cudaSetDevice(before);
  return result == ncclSuccess ? join(wanted) : result;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  return alive(__func__, comm) ? ncclSuccess : ncclInvalidArgument;
}

// As what releases does, both do their work even where a failure is wanted.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const auto code = enter(__func__);
  if (comm == nullptr) return code;
  if (!may_end(__func__, comm)) return ncclInvalidArgument;
  forget(comm);
  return code;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto code = enter(__func__);
  if (comm == nullptr) return code;
  if (!may_end(__func__, comm)) return ncclInvalidArgument;
  if (in_group()) {
    add_abort_to_group(comm);
    return code;
  }
  const auto clique = comm->clique;
  const int rank = comm->rank;
  abort_all({comm});
  const stand_in::Quiet quiet;
  clique->await_others(rank);
  return code;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  if (error == nullptr || !alive(__func__, comm)) return ncclInvalidArgument;
  auto& kept = comm->clique->at(comm->rank).error;
  *error = static_cast<ncclResult_t>(kept.load(std::memory_order_relaxed));
  std::function<ncclResult_t()> starts;
  {
    const Books books;
    if (comm->unready == 0) return ncclSuccess;
    if (--comm->unready > 0) {
      *error = ncclInProgress;
      return ncclSuccess;
    }
    std::swap(starts, comm->starts);
  }
  if (starts) *error = starts();
  if (*error != ncclSuccess) kept.store(*error, std::memory_order_relaxed);
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  if (count == nullptr || !alive(__func__, comm) || !ready(__func__, comm)) return ncclInvalidArgument;
  *count = comm->clique->size();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  if (rank == nullptr || !alive(__func__, comm) || !ready(__func__, comm)) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  const auto code = enter(__func__);
  if (code != ncclSuccess) return code;
  if (device == nullptr || !alive(__func__, comm) || !ready(__func__, comm)) return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                   "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                   "internal error - please report this issue to the NCCL developers",
                                   "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                   "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return code >= 0 && code < ncclNumResults ? texts[code] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) {
  static thread_local std::string kept;
  const Books books;
  kept = books.all.last_error;
  return kept.c_str();
}

}  // extern "C"

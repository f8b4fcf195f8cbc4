// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A library to preload. Ranks of MPICH that wait poll UCX, and never give their core away. If there are more ranks than
// cores, each message then takes as long as the scheduler lets them poll. Open MPI has an option for this.

#include <dlfcn.h>
#include <sched.h>

extern "C" unsigned ucp_worker_progress(void* worker) {
  static const auto progress = reinterpret_cast<unsigned (*)(void*)>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = progress(worker);
  if (events == 0) sched_yield();
  return events;
}

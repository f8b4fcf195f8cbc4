// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// visible [count]
//
// Compares parse_visible_devices() with the real CUDA: for each value of CUDA_VISIBLE_DEVICES a child process counts
// its devices. The GPUs are numbered as CUDA numbers them when the variable is unset. `count` is the child's mode.
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <fanout/cuda/visible/visible_devices_report.hpp>

#include "cuda/programs/expect.hpp"
#include "cuda/stand_in/stand_in.h"

namespace cuda = fanout::cuda;

namespace {

/// How many devices a process sees with this value of the variable; -1 if the process fails.
int counted(const char* program, const char* variable) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (variable == nullptr) {
      ::unsetenv("CUDA_VISIBLE_DEVICES");
    } else {
      ::setenv("CUDA_VISIBLE_DEVICES", variable, 1);
    }
    ::execl(program, program, "count", nullptr);
    ::_exit(255);
  }
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 128) return -1;
  return WEXITSTATUS(status);
}

std::string in_capitals(std::string text) {
  for (char& letter : text) letter = letter >= 'a' && letter <= 'f' ? static_cast<char>(letter - 'a' + 'A') : letter;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (fanout_test::is_mode(argc, argv, "count")) return cuda::device_count();
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("CUDA_DEVICE_ORDER");
  if (stand_in_is_here()) {
    std::puts("SKIPPED: the stand-in reads numbers only");
    return 77;
  }
  fanout_test::need_gpus(1);
  std::vector<cuda::PhysicalGpu> machine;
  for (int i = 0; i < cuda::device_count(); ++i) {
    const auto gpu = cuda::detail::seen_device(cuda::detail::gpu_at(i).properties());
    machine.push_back({.uuid = gpu.uuid, .name = gpu.name, .speed = 1});
  }
  const std::string uuid = machine[0].uuid;
  const std::string none = std::to_string(machine.size());    // the first number that names no GPU
  const std::string beyond = std::to_string(machine.size());  // names no GPU
  const std::vector<std::string> values{"",
                                        " ",
                                        ",",
                                        "0",
                                        " 0",
                                        "0 ",
                                        "\t0",
                                        "00",
                                        "+0",
                                        "-0",
                                        "0x0",
                                        "0abc",
                                        "abc",
                                        "-1",
                                        "0,-1",
                                        "-1,0",
                                        "0,0",
                                        "0, ",
                                        ",0",
                                        "0,,0",
                                        "0,abc",
                                        "abc,0",
                                        "0;1",
                                        "0.5",
                                        beyond,
                                        "0," + beyond,
                                        beyond + ",0",
                                        "18446744073709551616",
                                        uuid,
                                        uuid.substr(0, 12),
                                        "GPU",
                                        "gpu" + uuid.substr(3),
                                        " " + uuid,
                                        uuid + "," + uuid,
                                        uuid + "," + uuid.substr(0, 8),
                                        uuid + ",0",
                                        "0," + uuid,
                                        uuid + ",GPU-x",
                                        "GPU-x," + uuid,
                                        uuid + ",",
                                        uuid + ", " + uuid};
  // Where the driver 580.159 differs from the rules of torch.cuda, which fanout keeps. It reads numbers as 32 bits,
  // looks for what is named twice only in front of what ends the list, and takes uuids in capitals and with a tail, but
  // none that is empty. And fanout cannot know that a GPU has no MIG instances.
  const std::vector<std::string> known{"0," + beyond + ",0", "4294967296", "GPU-",  in_capitals(uuid),
                                       uuid + "0",           uuid + " ",   "MIG-x", "MIG-" + uuid + "/0/0"};
  int faults = 0;
  const auto compare = [&](const char* variable, bool differs = false) {
    const auto expected = static_cast<int>(cuda::parse_visible_devices(variable, nullptr, machine).gpus.size());
    const int found = counted(argv[0], variable);
    if (found == expected) return;
    if (!differs) ++faults;
    std::printf("%sCUDA_VISIBLE_DEVICES=\"%s\": CUDA shows %d, parse_visible_devices() says %d\n",
                differs ? "known: " : "", variable == nullptr ? "(unset)" : variable, found, expected);
  };
  compare(nullptr);
  for (const std::string& value : values) compare(value.c_str());
  for (const std::string& value : known) compare(value.c_str(), true);
  std::printf("%zu values, %d faults\n", values.size() + 1, faults);
  return faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

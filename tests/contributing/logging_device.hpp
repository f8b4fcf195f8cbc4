// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/worker/registry.hpp>

namespace contributing {

/// A device that runs its work in the caller's thread, in the host's memory, and logs when work begins and ends.
class LoggingDevice {
 public:
  // Without cores it has no thread.
  explicit LoggingDevice(int index)
      : worker_(&fanout::backend::registry().worker({.kind = "log", .index = index}, {}, false)) {}

  fanout::DeviceId id() const { return worker_->id(); }
  fanout::backend::Memory memory() const { return {}; }
  fanout::backend::Worker& worker() const { return *worker_; }

  /// Work goes to the device for as long as this lives.
  class Entered {
   public:
    explicit Entered(fanout::DeviceId id) : name_(to_string(id)) { std::fprintf(log, "%s begins\n", name_.c_str()); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { std::fprintf(log, "%s ends\n", name_.c_str()); }

   private:
    std::string name_;
  };
  Entered enter() const { return Entered(id()); }
  void synchronize() const {}  // work is done when forward returns

  static std::vector<LoggingDevice> visible() { return {LoggingDevice(0), LoggingDevice(1)}; }

  friend bool operator==(const LoggingDevice&, const LoggingDevice&) = default;

  static inline std::FILE* log = stderr;

 private:
  fanout::backend::Worker* worker_;
};
static_assert(fanout::Device<LoggingDevice>);

}  // namespace contributing

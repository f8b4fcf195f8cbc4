// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/measure/call_totals.hpp>
#include <fanout/parallel/parallel_model.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The shortest text that reads back as the same number, in any locale.
inline std::string exact(double number) {
  std::array<char, 32> text;  // NOLINT(*-member-init): to_chars writes it
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

inline std::string rounded(double number, int decimals) {
  std::array<char, 320> text;  // NOLINT(*-member-init): to_chars writes it
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, decimals).ptr};
}

}  // namespace detail

/// What one device did in the measured calls of a model. Times are sums, in seconds.
struct DeviceReport {
  DeviceId device;
  std::uint64_t calls = 0;   ///< calls in which the device had a shard
  std::uint64_t shards = 0;  ///< several in a call, if the split policy says so
  std::uint64_t rows = 0;
  double share = 0;             ///< of all rows of the model's calls, 0 to 1
  double next_share = 0;        ///< of the next call, if it has as many rows as the last one: what the split has learnt
  double scatter_seconds = 0;   ///< its inputs were made, and copied to it
  double forward_seconds = 0;   ///< `forward` ran on its thread
  double wait_seconds = 0;      ///< its work went on after `forward` had returned, as that of a GPU does
  std::uint64_t bytes_in = 0;   ///< copied to the device's memory
  std::uint64_t bytes_out = 0;  ///< copied from the device's memory
  std::uint64_t failures = 0;   ///< shards that threw a DeviceError, with Options::retry
  bool left_out = false;        ///< it gets no rows, since it failed twice: see ParallelModel::readmit()
  std::uint64_t most_rows = 0;  ///< that it gets at a time, since more did not fit into its memory; 0 if all did

  /// The time in which the device worked on the model: POP's useful time.
  double useful_seconds() const noexcept { return forward_seconds + wait_seconds; }
  /// Rows per second of that time; 0 without rows.
  double rows_per_second() const noexcept { return useful_seconds() > 0 ? double(rows) / useful_seconds() : 0; }
};

/// The measured calls of a model: where their time went, on each device and in all. A value, made by
/// ParallelModel::report(). Prints as a table, as CSV and as JSON.
///
/// The efficiencies are those of the POP project (Performance Optimisation and Productivity, "Standard Metrics for
/// Performance Analysis"; for the device offload efficiency, the metrics for accelerators of its tools TALP and
/// BasicAnalysis). Useful time is that of `forward` and of the work that it gave the device. All are 1 if nothing was
/// measured.
class Report {
 public:
  Report() = default;
  FANOUT_INLINE explicit Report(const detail::CallTotals& totals, const detail::Recovery* recovery = nullptr,
                                const Plan& next = {});

  /// Calls that have ended without an exception, and calls that threw. All else counts only the former.
  std::uint64_t calls() const noexcept { return calls_; }
  std::uint64_t failed_calls() const noexcept { return failed_; }

  /// The devices of the model, in its order. Moved out of a temporary, so that `for (... : model.report().devices())`
  /// is valid.
  const std::vector<DeviceReport>& devices() const& noexcept { return devices_; }
  std::vector<DeviceReport> devices() && noexcept { return std::move(devices_); }

  /// The sum of the durations of the calls, in seconds, and its parts: until the plan was made, from then on until all
  /// shards had ended, and for gathering. Calls at the same time add up.
  double seconds() const noexcept { return plan_ + shards_ + gather_; }
  double plan_seconds() const noexcept { return plan_; }
  double shards_seconds() const noexcept { return shards_; }
  double gather_seconds() const noexcept { return gather_; }

  /// The useful time of the mean device over that of the device with the most.
  double load_balance() const noexcept { return ratio(mean_useful(), most_useful()); }
  /// The useful time of the device with the most over the duration of the calls. The rest is planning, dispatching,
  /// copying, waiting and gathering.
  double communication_efficiency() const noexcept { return ratio(most_useful(), seconds()); }
  /// The useful time of the mean device over the duration of the calls: load_balance() * communication_efficiency().
  double parallel_efficiency() const noexcept { return ratio(mean_useful(), seconds()); }
  /// Of the time that the calling threads spent in the calls, the part in which they ran shards themselves, on host
  /// devices. In the rest they planned, dispatched, waited for devices and gathered.
  double device_offload_efficiency() const noexcept { return ratio(host_useful_, seconds()); }

  /// For a stage of a Pipeline: the part of the time of the pipeline's calls in which it had no step. Otherwise 0.
  double bubble() const noexcept { return pipeline_ > seconds() ? 1 - seconds() / pipeline_ : 0; }
  /// Returns this as the report of a stage of a Pipeline. `pipeline_seconds` is the time of the pipeline's calls.
  Report of_stage(double pipeline_seconds) && {
    pipeline_ = pipeline_seconds;
    return std::move(*this);
  }

  /// A line for each device, with a header, separated by commas: RFC 4180.
  FANOUT_INLINE std::string csv() const;

  /// One object, with an array of devices: RFC 8259.
  FANOUT_INLINE std::string json() const;

 private:
  static double seconds(std::int64_t nanoseconds) noexcept { return 1e-9 * double(nanoseconds); }
  static double ratio(double part, double of) noexcept { return of > 0 ? part / of : 1; }

  double most_useful() const noexcept {
    double most = 0;
    for (const DeviceReport& each : devices_) most = std::max(most, each.useful_seconds());
    return most;
  }
  double mean_useful() const noexcept {
    double sum = 0;
    for (const DeviceReport& each : devices_) sum += each.useful_seconds();
    return devices_.empty() ? 0 : sum / double(devices_.size());
  }

  std::uint64_t calls_ = 0;
  std::uint64_t failed_ = 0;
  double plan_ = 0;
  double shards_ = 0;
  double gather_ = 0;
  double host_useful_ = 0;
  double pipeline_ = 0;  // the duration of the calls of its pipeline
  std::vector<DeviceReport> devices_;
};

namespace detail {

/// Three digits and a unit: `12.3 ms`, `456 M`.
FANOUT_INLINE std::string with_unit(double number, const char* unit);

inline std::string percent(double part) { return rounded(100 * part, 1) + " %"; }

}  // namespace detail

/// The report as a table of the devices, and the efficiencies below it.
FANOUT_INLINE std::string to_string(const Report& report);

namespace detail {

/// The plan of a call with `rows` rows. Empty if `rows` is 0, or if the policy throws.
template <class Model>
Plan next_plan(const Model& model, std::size_t rows) {
  try {
    return rows == 0 ? Plan{} : model.plan(rows);
  } catch (const std::exception&) {  // the report of the calls until now is wanted all the more
    return {};
  }
}

}  // namespace detail

template <class M, class Source>
Report ParallelModel<M, Source>::report() const {
  if (!state_->measured) {
    throw Error(explain({.what = "report() of a model whose calls are not measured",
                         .advice = "make it with Options{.measure = true}"}));
  }
  detail::CallTotals totals = state_->measured->totals();
  totals.devices_are(devices().ids().data(), devices().size());  // before the first call none are listed
  return Report(totals, state_->settings.recovery, detail::next_plan(*this, totals.last_rows));
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/observe/report.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/report.hpp>

#include <fanout/plan/shard.hpp>

namespace fanout { inline namespace v0 {

Report::Report(const detail::CallTotals& totals, const detail::Recovery* recovery, const Plan& next)
    : calls_(totals.calls),
      failed_(totals.failed),
      plan_(seconds(totals.plan)),
      shards_(seconds(totals.shards)),
      gather_(seconds(totals.gather)),
      host_useful_(seconds(totals.host_useful)) {
  std::uint64_t rows = 0;
  for (const detail::DeviceTotals& device : totals.devices) rows += device.rows;
  for (const detail::DeviceTotals& device : totals.devices) {
    devices_.push_back({.device = device.id,
                        .calls = device.calls,
                        .shards = device.shards,
                        .rows = device.rows,
                        .share = rows == 0 ? 0 : double(device.rows) / double(rows),
                        .scatter_seconds = seconds(device.scatter),
                        .forward_seconds = seconds(device.forward),
                        .wait_seconds = seconds(device.wait),
                        .bytes_in = device.bytes_in,
                        .bytes_out = device.bytes_out});
  }
  for (std::size_t i = 0; i < devices_.size() && recovery != nullptr; ++i) {
    devices_[i].failures = recovery->health().failures(i);
    devices_[i].left_out = recovery->health().is_left_out(i);
    const std::size_t most = recovery->limits().most(i);
    if (most != recovery->limits().none) devices_[i].most_rows = most;
  }
  for (const Shard& shard : next) {
    if (next.rows() != 0) devices_[shard.device].next_share += double(shard.rows.size()) / double(next.rows());
  }
}

std::string Report::csv() const {
  std::string text =
      "device,calls,shards,rows,share,next_share,scatter_seconds,forward_seconds,wait_seconds,bytes_in,bytes_out,"
      "failures,left_out,most_rows\r\n";
  for (const DeviceReport& each : devices_) {
    text += to_string(each.device);
    const auto add = [&text](const std::string& cell) { text += ',' + cell; };
    add(std::to_string(each.calls));
    add(std::to_string(each.shards));
    add(std::to_string(each.rows));
    for (const double number :
         {each.share, each.next_share, each.scatter_seconds, each.forward_seconds, each.wait_seconds}) {
      add(detail::exact(number));
    }
    add(std::to_string(each.bytes_in));
    add(std::to_string(each.bytes_out));
    add(std::to_string(each.failures));
    add(each.left_out ? "1" : "0");
    add(std::to_string(each.most_rows));
    text += "\r\n";
  }
  return text;
}

std::string Report::json() const {
  std::string text = "{";
  const auto add = [&text](const char* name, const std::string& value) {
    if (text.back() != '{') text += ", ";
    text += '"' + std::string(name) + "\": " + value;
  };
  add("calls", std::to_string(calls_));
  add("failed_calls", std::to_string(failed_));
  add("seconds", detail::exact(seconds()));
  add("plan_seconds", detail::exact(plan_));
  add("shards_seconds", detail::exact(shards_));
  add("gather_seconds", detail::exact(gather_));
  add("load_balance", detail::exact(load_balance()));
  add("communication_efficiency", detail::exact(communication_efficiency()));
  add("parallel_efficiency", detail::exact(parallel_efficiency()));
  add("device_offload_efficiency", detail::exact(device_offload_efficiency()));
  if (pipeline_ > 0) add("bubble", detail::exact(bubble()));
  text += ", \"devices\": [";
  for (const DeviceReport& each : devices_) {
    text += text.back() == '[' ? "{" : ", {";
    add("device", '"' + to_string(each.device) + '"');
    add("calls", std::to_string(each.calls));
    add("shards", std::to_string(each.shards));
    add("rows", std::to_string(each.rows));
    add("share", detail::exact(each.share));
    add("next_share", detail::exact(each.next_share));
    add("scatter_seconds", detail::exact(each.scatter_seconds));
    add("forward_seconds", detail::exact(each.forward_seconds));
    add("wait_seconds", detail::exact(each.wait_seconds));
    add("bytes_in", std::to_string(each.bytes_in));
    add("bytes_out", std::to_string(each.bytes_out));
    add("failures", std::to_string(each.failures));
    add("left_out", each.left_out ? "true" : "false");
    add("most_rows", std::to_string(each.most_rows));
    text += '}';
  }
  return text + "]}";
}

}}  // namespace fanout::v0
namespace fanout { inline namespace v0 { namespace detail {

std::string with_unit(double number, const char* unit) {
  static constexpr std::array<const char*, 7> prefixes{"n", "u", "m", "", "k", "M", "G"};
  std::size_t prefix = 3;
  for (; number != 0 && number < 0.9995 && prefix > 0; --prefix) number *= 1000;
  for (; number >= 999.5 && prefix + 1 < prefixes.size(); ++prefix) number /= 1000;
  std::string all = rounded(number, number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2);
  if (*prefixes[prefix] != '\0' || *unit != '\0') all += std::string(" ") + prefixes[prefix] + unit;
  return all;
}

}}}  // namespace fanout::v0::detail
namespace fanout { inline namespace v0 {

std::string to_string(const Report& report) {
  using Row = std::array<std::string, 11>;
  std::vector<Row> rows{
      {"device", "calls", "rows", "share", "next", "scatter", "forward", "wait", "rows/s", "in", "out"}};
  for (const DeviceReport& each : report.devices()) {
    rows.push_back({to_string(each.device), std::to_string(each.calls), std::to_string(each.rows),
                    detail::percent(each.share), detail::percent(each.next_share),
                    detail::with_unit(each.scatter_seconds, "s"), detail::with_unit(each.forward_seconds, "s"),
                    detail::with_unit(each.wait_seconds, "s"), detail::with_unit(each.rows_per_second(), ""),
                    detail::with_unit(double(each.bytes_in), "B"), detail::with_unit(double(each.bytes_out), "B")});
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::size_t width = 0;
      for (const Row& other : rows) width = std::max(width, other[column].size());
      const std::string fill(width - row[column].size(), ' ');
      text += column == 0 ? row[column] + fill : "  " + fill + row[column];
    }
    text += '\n';
  }
  const double seconds = report.seconds();
  const auto part = [seconds](double of) { return detail::percent(seconds > 0 ? of / seconds : 0); };
  text += std::to_string(report.calls()) + " calls in " + detail::with_unit(seconds, "s") + ": plan " +
          part(report.plan_seconds()) + ", shards " + part(report.shards_seconds()) + ", gather " +
          part(report.gather_seconds());
  if (report.failed_calls() != 0) text += "; " + std::to_string(report.failed_calls()) + " more failed";
  for (const DeviceReport& each : report.devices()) {
    if (each.failures == 0) continue;
    text += '\n' + to_string(each.device) + " failed in " + std::to_string(each.failures) +
            (each.failures == 1 ? " shard" : " shards");
    if (each.left_out) text += ", and gets no rows until readmit()";
  }
  for (const DeviceReport& each : report.devices()) {
    if (each.most_rows == 0) continue;
    text += '\n' + to_string(each.device) + " gets at most " + std::to_string(each.most_rows) +
            " rows at a time, since more did not fit into its memory";
  }
  text += "\nload balance " + detail::percent(report.load_balance()) + " * communication efficiency " +
          detail::percent(report.communication_efficiency()) + " = parallel efficiency " +
          detail::percent(report.parallel_efficiency()) + "; device offload efficiency " +
          detail::percent(report.device_offload_efficiency());
  if (report.bubble() > 0) text += "; bubble " + detail::percent(report.bubble());
  text += '\n';
  return text;
}

}}  // namespace fanout::v0

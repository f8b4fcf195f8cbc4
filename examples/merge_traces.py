#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# merge_traces.py ALL TRACE...: merges files of fanout::trace() into the file ALL. Each needs another
# TraceOptions::process. Times are made to agree by the clocks of the machines, so these must be synchronised.
import json
import sys

traces = [json.load(open(path, encoding="utf-8")) for path in sys.argv[2:]]
began = [int(trace["otherData"]["unix_nanoseconds"]) for trace in traces]
processes = [{event["pid"] for event in trace["traceEvents"]} for trace in traces]
if len(set.union(*processes)) != sum(map(len, processes)):
    sys.exit("two traces have the same TraceOptions::process")
for trace, start in zip(traces, began):
    for event in trace["traceEvents"]:
        if "ts" in event:
            event["ts"] += (start - min(began)) / 1000
merged = traces[0]
merged["traceEvents"] = [event for trace in traces for event in trace["traceEvents"]]
for count in ("calls", "dropped_calls"):
    merged["otherData"][count] = sum(trace["otherData"][count] for trace in traces)
merged["otherData"]["unix_nanoseconds"] = str(min(began))
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(merged, file)

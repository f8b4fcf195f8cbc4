# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_trace.py TRACE CALLS SHARDS DROPPED NESTED [PROCESSES]: fails unless the file is a valid trace with so many calls.

Valid: JSON without names that occur twice; each event has the fields of its phase; slices of a lane overlap only if one
encloses the other; the ends of each arrow are there, once, bound to a slice, and in the order of time.
"""
import collections
import json
import sys

calls, shards, dropped, nested = map(int, sys.argv[2:6])
processes = int(sys.argv[6]) if len(sys.argv) > 6 else 1


def no_twins(pairs):
    assert len(dict(pairs)) == len(pairs), f"a name twice: {pairs}"
    return dict(pairs)


with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file, object_pairs_hook=no_twins, parse_constant=lambda word: sys.exit(f"{word} is not JSON"))
events = trace["traceEvents"]
by_phase = collections.defaultdict(list)
for event in events:
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"], event
    if event["ph"] != "M":
        assert isinstance(event["ts"], (int, float)) and event["cat"], event
    by_phase[event["ph"]].append(event)
assert set(by_phase) <= set("MXsfbe"), set(by_phase)
assert trace["otherData"]["dropped_calls"] == dropped, trace["otherData"]
assert trace["otherData"]["calls"] == calls, trace["otherData"]
assert int(trace["otherData"]["unix_nanoseconds"]) > 1_700_000_000 * 10**9, trace["otherData"]


def lane(event):
    return event["pid"], event["tid"]


def nanoseconds(number):
    return round(1000 * number)


# Lanes.
names = {lane(event): event["args"]["name"] for event in by_phase["M"] if event["name"] == "thread_name"}
assert len(names) == sum(event["name"] == "thread_name" for event in by_phase["M"]), "a lane has two names"
assert len({(lane[0], name) for lane, name in names.items()}) == len(names), f"a name twice: {names}"
assert len({event["pid"] for event in by_phase["M"]}) == processes
slices = collections.defaultdict(list)
counts = collections.Counter()
for event in by_phase["X"]:
    assert lane(event) in names, event
    assert event["dur"] >= 0, event
    begin = nanoseconds(event["ts"])
    slices[lane(event)].append((begin, begin + nanoseconds(event["dur"])))
    counts[event["cat"]] += 1
    assert names[lane(event)].startswith("calls of") == ("first_row" not in event.get("args", {})) or event["cat"] == "stage"
assert counts["call"] == calls and counts["shard"] == shards, counts
for where, all_of_lane in slices.items():
    around = []
    for begin, end in sorted(all_of_lane, key=lambda slice: (slice[0], -slice[1])):
        while around and around[-1] <= begin:
            around.pop()
        assert not around or end <= around[-1], f"{names[where]}: slices overlap at {begin}"
        around.append(end)


# Arrows.
def is_bound(event):
    at = nanoseconds(event["ts"])
    return any(begin <= at <= end for begin, end in slices[lane(event)])


def by_id(phase):
    found = {event["id"]: event for event in by_phase[phase]}
    assert len(found) == len(by_phase[phase]), f"an id twice in {phase}"
    return found


starts, ends = by_id("s"), by_id("f")
assert starts.keys() == ends.keys(), "an arrow has one end"
assert len(starts) == shards + nested, f"{len(starts)} arrows, expected {shards} + {nested}"
for id, start in starts.items():
    end = ends[id]
    assert isinstance(id, int) and id < 2**53, id
    assert (start["name"], start["cat"], start["pid"]) == (end["name"], end["cat"], end["pid"])
    assert end["bp"] == "e"
    assert start["ts"] <= end["ts"], (start, end)
    assert is_bound(start) and is_bound(end), (start, end)

# Asynchronous calls.
begun, ended = by_id("b"), by_id("e")
assert begun.keys() == ended.keys()
for id, event in begun.items():
    assert event["ts"] <= ended[id]["ts"], event

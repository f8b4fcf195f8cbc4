# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""schedules.py SVG TRACE...: draws the steps of pipelines, from files of fanout::trace(), one below the other.

Each lane is a device, each bar a step with the number of its micro-batch. A file has the name of its schedule:
`examples/schedules FOLDER` writes such files. Needs matplotlib."""
import collections
import json
import os
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

TEXT = "#768390"
COLOURS = {"forward": "#3b82c4", "backward": "#1f9e89", "weights": "#c98a2b"}

plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fanout", "font.family": "sans-serif", "font.size": 9,
                     "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"], "text.color": TEXT,
                     "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT})


def steps_of(path):
    """The steps of a trace, and the names of their lanes."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return [event for event in events if event.get("cat") == "shard" and "pass" in event["args"]], names


traces = [(os.path.splitext(os.path.basename(path))[0], *steps_of(path)) for path in sys.argv[2:]]
longest = max(step["ts"] + step["dur"] for _, steps, _ in traces for step in steps) / 1e6
lanes_of = [sorted({step["tid"] for step in steps}) for _, steps, _ in traces]
figure, axes = plt.subplots(len(traces), figsize=(8, 0.5 + sum(0.28 * len(lanes) + 0.45 for lanes in lanes_of)),
                            layout="constrained", height_ratios=[len(lanes) + 1 for lanes in lanes_of], squeeze=False)
for axis, (name, steps, names), lanes in zip(axes[:, 0], traces, lanes_of):
    stages = max(step["args"]["stage"] for step in steps) + 1
    bars = collections.defaultdict(list)
    for step in steps:
        place = len(lanes) - 1 - lanes.index(step["tid"])
        second_round = stages > len(lanes) and step["args"]["stage"] >= len(lanes)
        bars[place, step["args"]["pass"], second_round].append((step["ts"] / 1e6, step["dur"] / 1e6))
        axis.text((step["ts"] + step["dur"] / 2) / 1e6, place, step["args"]["micro_batch"], color="white", fontsize=7,
                  ha="center", va="center")
    for (place, kind, second_round), spans in bars.items():
        axis.broken_barh(spans, (place - 0.45, 0.9), color=COLOURS[kind], alpha=0.6 if second_round else 1,
                         edgecolor="white", linewidth=0.5, clip_on=False)
    axis.set_title(name, loc="left", fontsize=9)
    axis.set_yticks(range(len(lanes)), [f"device {i}" for i in reversed(range(len(lanes)))])
    axis.set_xlim(0, longest)
    axis.tick_params(length=0)
    axis.set_xticks([])
    for side in ("top", "right", "left", "bottom"):
        axis.spines[side].set_visible(False)
used = [kind for kind in COLOURS if any(step["args"]["pass"] == kind for _, steps, _ in traces for step in steps)]
figure.legend(handles=[Patch(color=COLOURS[kind], label=kind) for kind in used], loc="outside upper center",
              ncols=len(used), frameon=False)
figure.savefig(sys.argv[1], transparent=True, metadata={"Date": None, "Creator": None})

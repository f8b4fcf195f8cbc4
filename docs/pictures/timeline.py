# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""timeline.py TRACE SVG [FIRST LAST]: draws the calls FIRST to LAST of a file of fanout::trace(), counted from 0.

The lanes are those that Perfetto shows, and the arrows lead from a call to its shards. Needs matplotlib."""
import json
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, Patch

TEXT = "#768390"
COLOURS = {"call": "#8d96a0", "plan": "#c98a2b", "gather": "#b5607a", "scatter": "#3b82c4", "forward": "#1f9e89",
           "wait": "#9a6fd0"}

with open(sys.argv[1], encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
first, last = map(int, sys.argv[3:5]) if len(sys.argv) > 4 else (0, 2)
calls = sorted((event for event in events if event["ph"] == "X" and event["cat"] == "call"),
               key=lambda event: event["args"]["call"])[first:last + 1]
begin = min(call["ts"] for call in calls)
end = max(call["ts"] + call["dur"] for call in calls)
names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
numbers = {call["args"]["call"] for call in calls}
lanes = sorted({event["tid"] for event in events if event.get("args", {}).get("call") in numbers}, reverse=True)


def is_shown(event):
    """Its own events have the number of a call. Others, such as arrows, are told by their time and lane."""
    number = event.get("args", {}).get("call")
    return event["ph"] in "Xsf" and begin <= event["ts"] <= end and event["tid"] in lanes and number in {None, *numbers}


shown = [event for event in events if is_shown(event)]
at = {tid: place for place, tid in enumerate(lanes)}

plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fanout", "font.family": "sans-serif", "font.size": 9,
                     "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"], "text.color": TEXT,
                     "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT})
figure, axis = plt.subplots(figsize=(8, 0.9 + 0.5 * len(lanes)), layout="constrained")
for event in shown:
    kind = event["name"] if event["cat"] == "stage" else event["cat"]
    if event["ph"] == "X" and kind in COLOURS:
        height = 0.56 if kind == "call" else 0.36
        axis.barh(at[event["tid"]], event["dur"], height, event["ts"] - begin, color=COLOURS[kind],
                  alpha=0.45 if kind == "call" else 1, linewidth=0)
starts = {event["id"]: event for event in shown if event["ph"] == "s"}
for arrives in (event for event in shown if event["ph"] == "f" and event["id"] in starts):
    leaves = starts[arrives["id"]]
    axis.add_patch(FancyArrowPatch((leaves["ts"] - begin, at[leaves["tid"]]), (arrives["ts"] - begin, at[arrives["tid"]]),
                                   arrowstyle="-|>", mutation_scale=7, color=TEXT, linewidth=0.9, shrinkA=0, shrinkB=0,
                                   connectionstyle="arc3,rad=0.15"))
axis.set_yticks(range(len(lanes)), [names[tid] for tid in lanes])
axis.set_ylim(-0.5, len(lanes) - 0.5)
axis.set_xlim(0, end - begin)
axis.set_xlabel("microseconds")
for side in ("top", "right", "left"):
    axis.spines[side].set_visible(False)
used = [kind for kind in COLOURS if any(kind in (event["name"], event.get("cat")) for event in shown)]
figure.legend(handles=[Patch(color=COLOURS[kind], alpha=0.45 if kind == "call" else 1, label=kind) for kind in used],
              loc="outside upper center", ncols=len(used), frameon=False)
figure.savefig(sys.argv[2], transparent=True, metadata={"Date": None, "Creator": None})

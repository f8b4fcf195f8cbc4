#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""draw.py FILE: draws the times of the calls that examples/unequal.cpp prints, which are read from the standard input."""

import re
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

TEXT, COLOURS = "#768390", ["#8d96a0", "#3b82c4", "#1f9e89"]


def read(lines):
    """{split: [milliseconds of each call]}."""
    times, name = {}, None
    for line in lines:
        call = re.match(r" +\d+ +\d+ \+ \d+ +([\d.]+) ms", line)
        if call:
            times[name].append(float(call[1]))
        elif not line.strip():
            return times
        elif not line.startswith(" "):
            name = line.strip()
            times[name] = []
    return times


plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "fanout", "font.family": "sans-serif", "font.size": 9,
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"], "text.color": TEXT, "axes.labelcolor": TEXT,
    "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "grid.color": TEXT, "grid.alpha": 0.22, "grid.linewidth": 0.6,
    "legend.frameon": False})
figure, axis = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
for (name, calls), colour in zip(read(sys.stdin).items(), COLOURS):
    axis.plot(range(1, len(calls) + 1), calls, "o-", markersize=4, color=colour, label=name)
axis.axvline(5, color=TEXT, linewidth=0.8, linestyle="--")
axis.text(5.08, 3, "the GPU becomes 4 times slower", fontsize=8)
axis.set(xlabel="call", ylabel="virtual time, ms", ylim=(0, 60))
figure.legend(loc="outside upper center", ncols=3)
figure.savefig(sys.argv[1], transparent=True, metadata={"Date": None, "Creator": None})

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is printed."""

from driver.judge import is_serial, ratio, values_of


def duration(nanoseconds):
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if abs(nanoseconds) < 999.5 * size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def quantity(key, value):
    if key.endswith("_ns"):
        return duration(value)
    return f"{value:.4g}"


def spread_text(spread):
    mark = "!" if spread.disturbed else ""
    return f"{spread.median:.3g}{mark} ({spread.least:.3g} to {spread.most:.3g})"


def lines_of(row, measured):
    """The table of one variant, the best first; and who took no part."""
    ours = measured.results.get(row.ours().name)
    rows = []
    for name, results in measured.results.items():
        value = values_of(results, row.metric)
        p99, cpu, two = (values_of(results, key) for key in ("p99_ns", "cpu_share", "two_threads"))
        if is_serial(row, results):
            against = "serial"
        elif ours is results:
            against = "1"
        else:
            compared = ratio(row, ours, results) if ours and not is_serial(row, ours) else None
            against = spread_text(compared) if compared else "-"
        rows.append((
            value.median if value else float("inf"),
            [
                name,
                quantity(row.metric, value.median) + ("!" if value.disturbed else "") if value else "-",
                duration(p99.median) if p99 else "-",
                f"{100 * cpu.median:.0f} %" if cpu else "-",
                f"{100 * two.median:.0f} %" if two else "-",
                against,
            ],
        ))
    rows.sort(key=lambda r: r[0], reverse=row.better == "higher")
    title = f"row {row.number}: {row.title}" + (f": {measured.variant}" if measured.variant else "")
    head = ["", row.metric.removesuffix("_ns"), "p99", "cpu", "two threads", f"over {row.ours().name}"]
    table = [head] + [cells for _, cells in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    lines = [title]
    for line in table:
        lines.append("  " + line[0].ljust(widths[0]) + "".join("  " + t.rjust(w) for t, w in zip(line[1:], widths[1:])))
    lines += [f"  {name}: {why}" for name, why in {**measured.absent, **measured.faults}.items()]
    return lines


def target_lines(verdicts):
    lines = ["targets"]
    for v in verdicts:
        where = f"row {v.row}" + (f", {v.variant}" if v.variant else "")
        word = {True: "met", False: "MISSED", None: "not judged"}[v.met]
        found = spread_text(v.value) if v.value else ""
        lines.append(f"  {word:10}  {where}: {v.text}: {found}{v.why}")
    return lines

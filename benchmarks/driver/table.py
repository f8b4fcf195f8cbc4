# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is printed."""

from driver.judge import base_of, is_serial, ratio, values_of


def duration(nanoseconds):
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if abs(nanoseconds) < 999.5 * size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def quantity(key, value):
    if key.endswith("_ns"):
        return duration(value)
    return f"{value:.4g}"


def spread_text(spread, key=""):
    mark = "!" if spread.disturbed else ""
    middle, least, most = (quantity(key, x) if key else f"{x:.3g}" for x in (spread.median, spread.least, spread.most))
    return f"{middle}{mark} ({least} to {most})"


def cells_of(row, measured, name, base):
    results = measured.results[name]
    value = values_of(results, row.metric)
    p99, cpu, two = (values_of(results, key) for key in ("p99_ns", "cpu_share", "two_threads"))
    if is_serial(row, results):
        against = "one thread"
    elif name == base:
        against = "1"
    else:
        compared = ratio(row, measured.results[base], results) if base else None
        against = spread_text(compared) if compared else "-"
    return [
        quantity(row.metric, value.median) + ("!" if value.disturbed else "") if value else "-",
        duration(p99.median) if p99 else "-",
        f"{100 * cpu.median:.0f} %" if cpu else "-",
        f"{100 * two.median:.0f} %" if two else "-",
        against,
    ]


def aligned(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  " + line[0].ljust(widths[0]) + "".join("  " + t.rjust(w) for t, w in zip(line[1:], widths[1:]))
            for line in lines]


def lines_of(row, parts):
    """The tables of a row: one for each variant, the best first, or one for all where there are many; and who took no
    part for another reason than that it was not found."""
    head = ["", row.metric.removesuffix("_ns"), "p99", "cpu", "two threads"]
    lines = []
    many = len(parts) > 8
    table = []
    for variant, measured in parts.items():
        base = base_of(row, measured)
        names = list(measured.results)
        if many:
            table += [[f"{name}: {variant}"] + cells_of(row, measured, name, base) for name in names]
            continue
        values = {name: values_of(measured.results[name], row.metric) for name in names}
        names.sort(key=lambda n: values[n].median if values[n] else float("inf"), reverse=row.better == "higher")
        lines.append(f"row {row.number}: {row.title}" + (f": {variant}" if variant else ""))
        if not names:
            continue
        lines += aligned([head + [f"over {base}" if base else ""]] +
                         [[name] + cells_of(row, measured, name, base) for name in names])
    if many:
        lines.append(f"row {row.number}: {row.title}")
        lines += aligned([head + ["ratio"]] + table) if table else []
    why = {}
    for measured in parts.values():
        for name, reason in {**measured.absent, **measured.faults}.items():
            if "not found: " not in reason:
                why.setdefault(reason, {})[name] = None
    return lines + [f"  {', '.join(names)}: {reason}" for reason, names in why.items()]


def target_lines(verdicts):
    """One line for each target; where it is about many variants, one line for all of them, and the worst."""
    lines = ["targets"]
    groups = {}
    for verdict in verdicts:
        groups.setdefault((verdict.row, verdict.text), []).append(verdict)
    for (row, text), group in groups.items():
        judged = [v for v in group if v.met is not None]
        missed = [v for v in judged if not v.met]
        if len(judged) > 3:
            worst = max(judged, key=lambda v: v.value.median * (-1 if "at least" in text else 1))
            found = f"met in {len(judged) - len(missed)} of {len(judged)}; worst, {worst.variant}: " + \
                spread_text(worst.value, worst.key)
            lines.append(f"  {'MISSED' if missed else 'met':10}  row {row}: {text}: {found}")
            continue
        for v in (v for v in group if v.met is not None):
            where = f"row {v.row}" + (f", {v.variant}" if v.variant else "")
            lines.append(f"  {'met' if v.met else 'MISSED':10}  {where}: {text}: {spread_text(v.value, v.key)}")
    silent = {}
    for v in (v for v in verdicts if v.met is None):
        silent.setdefault((v.row, v.why), set()).add(v.text)
    for (row, why), texts in silent.items():
        what = texts.pop() if len(texts) == 1 else f"{len(texts)} targets"
        lines.append(f"  {'not judged':10}  row {row}: {what}: {why}")
    return lines

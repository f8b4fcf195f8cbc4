# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures for benchmarks/compile_time/run: see there."""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OURS = ["-I", os.path.join(ROOT, "include"), "-I", os.path.join(ROOT, "examples")]
COMPILED = OURS + ["-DFANOUT_SEPARATE_COMPILATION"]


class Row:
    """A program. `most`: the limit of its ratio with --check. `runs` says what it must print."""

    def __init__(self, name, file, flags=(), link=(), most=None, runs=None):
        self.name, self.file, self.flags, self.link = name, os.path.join(ROOT, file), list(flags), list(link)
        self.most, self.runs = most, runs
        self.seconds, self.megabytes, self.bytes = float("inf"), 0, 0

    def command(self, compiler):
        return [compiler, "-std=c++20", "-O2", *self.flags, "-c", self.file]


SQUARES = "1 4 9 16 25"
ROWS = [
    Row("plain", "benchmarks/compile_time/plain.cpp", runs=SQUARES),
    Row("README", "examples/readme.cpp", OURS, most=8.5, runs=SQUARES),
    Row("README, compiled part", "examples/readme.cpp", COMPILED, ["fanout"], most=3.8, runs=SQUARES),
    Row("asynchronous", "benchmarks/compile_time/asynchronous.cpp", OURS, most=9.5, runs=SQUARES),
    Row("asynchronous, compiled part", "benchmarks/compile_time/asynchronous.cpp", COMPILED, ["fanout"], most=4.8,
        runs=SQUARES),
    Row("nested result", "benchmarks/compile_time/nested.cpp", OURS, most=15),
    Row("nested result, compiled part", "benchmarks/compile_time/nested.cpp", COMPILED, ["fanout"], most=10),
    Row("16 models", "benchmarks/compile_time/models.cpp", OURS, most=15),
    Row("16 models, compiled part", "benchmarks/compile_time/models.cpp", COMPILED, ["fanout"], most=11),
]
MORE = [  # not with --check
    Row("16 asynchronous models", "benchmarks/compile_time/models.cpp", OURS + ["-DASYNCHRONOUS"]),
    Row("8 stages, trained", "examples/too_big.cpp", OURS),
]
PEERS = [
    Row("oneTBB parallel_for", "benchmarks/compile_time/onetbb.cpp", link=["-ltbb"], runs=SQUARES),
    Row("Taskflow for_each_index", "benchmarks/compile_time/taskflow.cpp", runs=SQUARES),
    Row("libtorch data_parallel", "benchmarks/compile_time/libtorch.cpp", link=["-ltorch", "-ltorch_cpu", "-lc10"]),
]
FANOUT = Row("fanout's compiled part", "build/source.cpp", COMPILED)


def compile_once(row, compiler, output):
    """Compiles, and keeps the least time. Returns what the compiler said if it failed."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(row.command(compiler) + ["-o", output], stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            return said.read().decode()
    row.seconds = min(row.seconds, used.ru_utime + used.ru_stime)
    row.megabytes = used.ru_maxrss / 1024
    row.bytes = os.path.getsize(output)
    return None


def measure(rows, compiler, rounds, folder):
    for _ in range(rounds):
        for i, row in enumerate(rows):
            error = compile_once(row, compiler, f"{folder}/{i}.o")
            if error:
                sys.exit(f"{row.file} does not compile:\n{error}")


def run_programs(rows, compiler, folder):
    """Links and runs them, so that they compile what they say."""
    for i, row in enumerate(rows):
        if row is FANOUT:
            continue
        link = [f"{folder}/{rows.index(FANOUT)}.o" if part == "fanout" else part for part in row.link]
        subprocess.run([compiler, f"{folder}/{i}.o", *link, "-pthread", "-o", f"{folder}/program"], check=True)
        said = subprocess.run([f"{folder}/program"], check=True, capture_output=True, text=True).stdout
        if row.runs and said.split() != row.runs.split():
            sys.exit(f"{row.file} prints {said}")


def print_table(rows, compiler, rounds, check):
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    print(f"{version}, the least of {rounds} rounds: {shlex.join(rows[0].command(compiler)[:3])} -c")
    print(f"{'program':32} {'s':>6} {'/ plain':>8} {'MB':>6} {'object KB':>10}" + ("    limit" if check else ""))
    for row in rows:
        limit = f" {row.most:8}" if check and row.most else ""
        print(f"{row.name:32} {row.seconds:6.2f} {row.seconds / rows[0].seconds:8.1f} {row.megabytes:6.0f} "
              f"{row.bytes / 1000:10.0f}{limit}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("compiler", nargs="?", default="g++")
    given = parser.parse_args()
    rounds = int(os.environ.get("FANOUT_ROUNDS", 1 if given.check else 7))
    with tempfile.TemporaryDirectory() as folder:
        FANOUT.file = f"{folder}/source.cpp"
        with open(FANOUT.file, "w", encoding="utf-8") as source:
            source.write("#include <fanout/source.hpp>\n")
        rows = ROWS + [FANOUT]
        if not given.check:
            rows = rows + MORE
            for peer in PEERS:
                error = compile_once(peer, given.compiler, f"{folder}/peer.o")
                if error:
                    print(f"{peer.name}: does not compile here")
                else:
                    rows = rows + [peer]
        over = True
        for _ in range(3 if given.check else 1):  # again where the machine was busy
            measure(rows, given.compiler, rounds, folder)
            over = [row for row in rows if row.most and row.seconds > row.most * rows[0].seconds]
            if not over:
                break
        run_programs(rows, given.compiler, folder)
        print_table(rows, given.compiler, rounds, given.check)
    if given.check and over:
        sys.exit("over the limit: " + ", ".join(row.name for row in over))


main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one command with resource limits: a program with a changed header may do anything."""

import os
import resource
import signal
import subprocess  # with prlimit, since a function that runs between fork and exec is not safe beside other threads

LARGEST_FILE = 64 << 20  # a failing loop may print forever
MOST_MEMORY = 8 << 30  # of address space


def run(command, seconds, cwd, env=None, bound_memory=True):
    """Returns exit status and output, both streams in one. After `seconds`, the command and its children are killed and
    the status is None."""
    bounds = ["prlimit", "--core=0", f"--fsize={LARGEST_FILE}"] + [f"--as={MOST_MEMORY}"] * bound_memory
    process = subprocess.Popen(bounds + command, cwd=cwd, env={**os.environ, "LC_ALL": "C", **(env or {})},
                               start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, output.decode(errors="replace")


def processor_seconds():
    """Returns the time that all commands together have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""crash.py SAVER FOLDER [ROUNDS]: kills a program that saves, and fills its disk, ROUNDS times each (200).

After each time, the file must be the old one or the new one, whole, and never older than what the program has said to
be saved. The full disk is a small tmpfs, whose free space is another one each time. If none can be mounted, it is a
limit of the size of files, as the last line then says.
"""
import os
import random
import resource
import signal
import subprocess
import sys
import time

saver, folder = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 200
rng = random.Random(int(time.time()))


def check(path):
    return int(subprocess.run([saver, "check", path], check=True, stdout=subprocess.PIPE, text=True).stdout)


def left_behind(where):
    return [name for name in os.listdir(where) if name.startswith(".fanout.")]


def kill():
    path = os.path.join(folder, "killed.safetensors")
    subprocess.run([saver, "once", path, "1"], check=True)
    number, renewed, left = 1, 0, 0
    for _ in range(rounds):
        process = subprocess.Popen([saver, "forever", path, str(number + 1)], stdout=subprocess.PIPE, text=True)
        for _ in range(rng.randrange(3)):  # some are killed in their first save
            process.stdout.readline()
        time.sleep(rng.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        said = [int(line) for line in process.communicate()[0].split()]
        assert process.returncode == -signal.SIGKILL, process.returncode
        found = check(path)
        assert found >= max([number, *said]), f"{found} is older than {said}"
        renewed += found > number
        number = found
        for name in left_behind(folder):
            left += 1
            os.remove(os.path.join(folder, name))
    assert number > 1
    print(f"{rounds} kills: {number - 1} states were saved, no file was broken or lost, "
          f"{left} temporary files were left")


def mount(where):
    os.makedirs(where, exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", where], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def fill():
    where = os.path.join(folder, "disk")
    is_mounted = mount(where)
    try:
        path = os.path.join(where, "full.safetensors")
        ballast = os.path.join(where, "ballast")
        subprocess.run([saver, "once", path, "1"], check=True)
        number, refused = 1, 0
        for next_number in range(2, rounds + 2):
            room = rng.randrange(1_300_000)  # a state has 1.03 MB
            limit = None
            if is_mounted:
                disk = os.statvfs(where)
                with open(ballast, "wb") as file:
                    file.write(b"x" * max(0, disk.f_bavail * disk.f_frsize - room))
            else:
                def limit():
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            done = subprocess.run([saver, "once", path, str(next_number)], stdout=subprocess.PIPE, text=True,
                                  check=False, preexec_fn=limit, restore_signals=False)
            assert done.returncode in (0, 3), done
            if done.returncode == 3:
                refused += 1
                reason = "No space left on device" if is_mounted else "File too large"
                assert path in done.stdout and reason in done.stdout, done.stdout
            else:
                number = next_number
            assert not left_behind(where), left_behind(where)
            if is_mounted:
                os.remove(ballast)
            assert check(path) == number
        assert 0 < refused < rounds, refused
        means = "a tmpfs that is full" if is_mounted else "a limit of the size of files, since no tmpfs can be mounted"
        print(f"{rounds} saves to {means}: {refused} were refused, no file was broken or lost")
    finally:
        if is_mounted:
            subprocess.run(["umount", where], check=True)


kill()
fill()

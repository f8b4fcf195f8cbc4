# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exchange.py PROGRAM FOLDER: fails unless Python's safetensors and the program `exchange` understand each other.

1. The reference implementation reads what fanout wrote: numpy the types that it has, bit by bit the others.
2. fanout reads what the reference implementation wrote.
3. Of many files that were changed at random, fanout accepts none that the reference implementation refuses.
"""
import os
import random
import struct
import subprocess
import sys

import numpy as np
import safetensors
import safetensors.numpy

program, folder = sys.argv[1:3]
ours, theirs = os.path.join(folder, "ours.safetensors"), os.path.join(folder, "theirs.safetensors")
TEXT = b"gr\xc3\xbc\xc3\x9f\0\xff"

# Each type of the format: its bytes, its name in numpy, and the bytes of 0 to 5 if numpy has no such type.
F8_E4M3 = bytes([0x00, 0x38, 0x40, 0x44, 0x48, 0x4A])
F8_E5M2 = bytes([0x00, 0x3C, 0x40, 0x42, 0x44, 0x45])
BF16 = struct.pack("<6H", 0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0)
TYPES = {
    "BOOL": (1, "bool", None), "U8": (1, "uint8", None), "I8": (1, "int8", None), "U16": (2, "uint16", None),
    "I16": (2, "int16", None), "F16_": (2, "float16", None), "BF16_": (2, "bfloat16", BF16),
    "F8_E4M3_": (1, "float8_e4m3fn", F8_E4M3), "F8_E5M2_": (1, "float8_e5m2", F8_E5M2), "U32": (4, "uint32", None),
    "I32": (4, "int32", None), "F32": (4, "float32", None), "F64": (8, "float64", None), "U64": (8, "uint64", None),
    "I64": (8, "int64", None), "C64": (8, "complex64", None),
}


def pattern(name, size):
    return bytes(i % 2 if name == "BOOL" else (i * 37 + 11) % 256 for i in range(4 * size))


def numbers(name, size, numpy_name, raw):
    if raw is not None:
        return raw
    values = [i % 2 for i in range(6)] if name == "BOOL" else range(6)
    return np.array(values, dtype=numpy_name).tobytes()


def expected():
    """Name to type, shape and bytes of all tensors."""
    tensors = {"text": ("U8", [len(TEXT)], TEXT)}
    for name, (size, numpy_name, raw) in TYPES.items():
        dtype, all_numbers = name.rstrip("_"), numbers(name, size, numpy_name, raw)
        tensors[name + ".numbers"] = (dtype, [2, 3], all_numbers)
        tensors[name + ".bits"] = (dtype, [4], pattern(name, size))
        tensors[name + ".scalar"] = (dtype, [], all_numbers[3 * size:4 * size])
        tensors[name + ".empty"] = (dtype, [0, 2], b"")
    return tensors


def run(*command):
    return subprocess.run([program, *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def skip(what):
    print(f"SKIPPED: safetensors {safetensors.__version__} and numpy {np.__version__} have no {what}")


def read_ours():
    run("write", ours)
    with open(ours, "rb") as file:
        found = {name: (view["dtype"], list(view["shape"]), bytes(view["data"]))
                 for name, view in safetensors.deserialize(file.read())}
    wanted = expected()
    assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
    for name, tensor in wanted.items():
        assert found[name] == tensor, (name, found[name], tensor)
    read, lacking = 0, set()
    with safetensors.safe_open(ours, framework="np") as file:
        for name, (_, shape, data) in wanted.items():
            numpy_name = "uint8" if name == "text" else TYPES[name.split(".")[0]][1]
            try:
                array = file.get_tensor(name)
                assert array.dtype == np.dtype(numpy_name), (name, array.dtype)
            except (TypeError, KeyError, AttributeError, ValueError, safetensors.SafetensorError):
                lacking.add(numpy_name)
                continue
            assert list(array.shape) == shape and array.tobytes() == data, name
            read += 1
    for numpy_name in sorted(lacking):
        skip(f"arrays of {numpy_name}; it was read bit by bit")
    assert not lacking & {row[1] for row in TYPES.values() if row[2] is None}, lacking
    print(f"Python read {len(wanted)} tensors of ours, numpy {read} of them")


def write_theirs():
    kept, specs = [], {}
    for name, (_, shape, data) in expected().items():
        numpy_name = "uint8" if name == "text" else TYPES[name.split(".")[0]][1]
        array = np.frombuffer(data, dtype=np.uint8).copy()
        kept.append(array)
        specs[name] = safetensors.TensorSpec(dtype=numpy_name, shape=shape, data_ptr=array.ctypes.data,
                                             data_len=array.nbytes)
    safetensors.serialize_file(specs, theirs, metadata={"format": "np", "\u20ac\n": "\"\\"})
    run("read", theirs)
    run("read", ours)
    print(f"fanout read {len(specs)} tensors of Python's")


def changed(data, rng):
    """The file with one to three changes of its header, whose size mostly fits again."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
        before, end = len(data), min(len(data), 8 + size)
        at = rng.randrange(8, max(9, end))
        kind = rng.randrange(9)
        if kind == 0:
            if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = bytes([rng.choice(b'"{}[]:,0129-.eE\\u \t\0\xc3\xff')])
        elif kind == 2:
            del data[at:at + rng.randrange(1, 4)]
        elif kind == 3:
            data[at:at] = data[rng.randrange(8, max(9, end)):][:rng.randrange(1, 60)]
        elif kind == 4:
            data[at:at] = rng.choice((b"18446744073709551616", b"4294967296", b"\\ud800", b"\\u0041"))
        elif kind == 5:  # between two tokens
            places = [i for i in range(8, end) if data[i] in b"{}[],:"]
            at = rng.choice(places or [at]) + 1
            data[at:at] = rng.choice((b" ", b"\n", b"\t\r", b","))
        elif kind == 6:
            data[9:9] = rng.choice((b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},', b'"__metadata__":{},',
                                    b'"z":{"shape":[0,9],"data_offsets":[0,0],"dtype":"F64"},',
                                    b'"__metadata__":{"\\u20ac":"\\n"},', b'"y":{"dtype":"F4","shape":[3],'))
        elif kind == 7 and rng.random() < 0.2:
            del data[rng.randrange(len(data) or 1):]
        elif kind == 8 and rng.random() < 0.2:
            data += b"x" * rng.randrange(1, 9)
            continue
        if len(data) >= 8 and rng.random() < 0.9:
            data[:8] = struct.pack("<Q", max(0, size + len(data) - before))
    return bytes(data)


def judge(count=3000, seed=20):
    rng = random.Random(seed)
    arrays = {"a": np.arange(3, dtype=np.uint8), "b.c": np.ones((2, 1), np.float32), "\u20ac": np.array(1.0)}
    origins = [safetensors.numpy.save(arrays), safetensors.numpy.save(arrays, {"k": "v"}), safetensors.numpy.save({})]
    cases = [changed(rng.choice(origins), rng) for _ in range(count)] + origins
    for i, case in enumerate(cases):
        with open(os.path.join(folder, str(i)), "wb") as file:
            file.write(case)
    verdicts = [line == "1" for line in run("judge", folder, str(len(cases))).split()]
    assert len(verdicts) == len(cases) and all(verdicts[-len(origins):])
    both = stricter = 0
    for case, accepted in zip(cases, verdicts):
        try:
            safetensors.deserialize(case)
            valid = True
        except Exception:  # whatever it refuses with
            valid = False
        assert valid or not accepted, ("fanout accepts what safetensors refuses", case)
        both += valid and accepted
        stricter += valid and not accepted
    assert both > count // 50, both
    print(f"of {count} files that were changed, both accept {both - len(origins)}, and safetensors alone {stricter}")


read_ours()
write_theirs()
judge()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's opinion on .npy files.

    oracle.py make FOLDER    writes NNN.npy and NNN.raw (its elements in C order, this machine's byte order) for each
                             kind of array, and list.txt: a line "NNN.npy NNN.raw dtype extent …" for each
    oracle.py check FOLDER   reads list.txt of the same form and says whether np.load() finds in each .npy what .raw
                             holds
Exits 77 where there is no NumPy.
"""
import os
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

CODES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
         "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bf16": "u2"}
SHAPES = [(), (1,), (7,), (0,), (0, 3), (3, 0), (3, 4), (5, 1), (1, 5), (2, 3, 4), (16, 33, 3), (3, 16, 33), (4, 1, 9),
          (2, 3, 4, 5), (2, 1, 2, 1, 2, 1, 2, 3), (301, 70)]
LARGE = [(3000, 500), (40, 9000), (3, 300, 400), (9000, 40)]


def write_bf16(path, array, order):
    """What NumPy writes for ml_dtypes.bfloat16, by hand where there is no ml_dtypes."""
    if ml_dtypes is not None:
        np.save(path, array.view(ml_dtypes.bfloat16))
        return
    fortran = order == "F" and not array.flags.c_contiguous
    with open(path, "wb") as file:
        header = {"descr": "<V2", "fortran_order": fortran, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(array.tobytes(order="F" if fortran else "C"))


def make(folder):
    random = np.random.default_rng(1)
    lines = []

    def add(name, shape, byteorder, order, version):
        dtype = np.dtype(CODES[name])
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(random.bytes(count * dtype.itemsize), dtype=dtype).reshape(shape)
        stem = f"{len(lines):04d}"
        path = os.path.join(folder, stem)
        array.tofile(path + ".raw")
        stored = np.asarray(array.astype(dtype.newbyteorder(byteorder)), order=order)
        if name == "bf16":
            write_bf16(path + ".npy", stored, order)
        else:
            with open(path + ".npy", "wb") as file:
                np.lib.format.write_array(file, stored, version=version)
        lines.append(" ".join([stem + ".npy", stem + ".raw", name] + [str(extent) for extent in shape]))

    for name in CODES:
        for byteorder in "<>":
            if name == "bf16" and byteorder == ">":
                continue
            for order in "CF":
                for index, shape in enumerate(SHAPES):
                    add(name, shape, byteorder, order, (1 + (index + len(lines)) % 3, 0))
    for name in ("u8", "f32"):
        for shape in LARGE:
            add(name, shape, "<", "F", (1, 0))
            add(name, shape, ">", "F", (2, 0))
    with open(os.path.join(folder, "list.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


def check(folder):
    wrong = 0
    for line in open(os.path.join(folder, "list.txt")):
        npy, raw, name, *extents = line.split()
        shape = tuple(int(extent) for extent in extents)
        loaded = np.load(os.path.join(folder, npy), allow_pickle=False)
        expected = open(os.path.join(folder, raw), "rb").read()
        wanted = "|V2" if name == "bf16" else np.dtype(CODES[name]).str
        with open(os.path.join(folder, npy), "rb") as file:
            header = file.read(10)
        start = 10 + int.from_bytes(header[8:10], "little")
        problem = None
        if loaded.shape != shape:
            problem = f"shape {loaded.shape}, not {shape}"
        elif loaded.dtype.str != wanted:
            problem = f"dtype {loaded.dtype.str}, not {wanted}"
        elif loaded.tobytes() != expected:
            problem = "other elements"
        elif start % 64 != 0:
            problem = f"data at {start}, no multiple of 64"
        if problem is not None:
            print(f"{npy}: {problem}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit({"make": make, "check": check}[sys.argv[1]](sys.argv[2]))

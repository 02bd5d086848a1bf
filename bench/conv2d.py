#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""conv2d beside OpenCV's filter2D, from memory to memory, in turns in one run, on the same cores.

Needs NumPy and OpenCV for Python (Debian: python3-numpy, python3-opencv). Prints one JSON object with the rows of
`headrace bench`; a ratio above 1 says that Headrace is the faster one. Ends with 1 if the results differ by more than 1e-5
of the sum of magnitudes in an element (integers: by more than 1), or if Headrace is slower in the case that is promised: 5x5, f32, 8192 x 8192.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np

BORDER = cv2.BORDER_REFLECT_101


def cases(edge):
    random = np.random.default_rng(1)
    for dtype in ("float32", "uint8"):
        image = (random.random((edge, edge), dtype=np.float32) * 255).astype(dtype)
        for size in (3, 5, 7):
            kernel = random.random((size, size), dtype=np.float32) - np.float32(0.3)
            yield f"{dtype} {size}x{size}", image, kernel / np.abs(kernel).sum()


def difference(image, kernel, ours, theirs):
    """Largest difference, as a part of the sum of magnitudes for floats, as it is for integers."""
    if image.dtype.kind in "iu":
        return float(np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max()), 1.0
    magnitude = cv2.filter2D(np.abs(image), -1, np.abs(kernel), borderType=BORDER)
    return float((np.abs(ours - theirs) / np.maximum(magnitude, np.float32(1e-30))).max()), 1e-5


def spread(times):
    low, high = np.percentile(times, [10, 90])
    return round(100 * (high - low) / statistics.median(times), 1)


def measure(program, folder, name, image, kernel, repeats):
    paths = [os.path.join(folder, part) for part in ("image.npy", "kernel.npy", "out.npy")]
    np.save(paths[0], image)
    np.save(paths[1], kernel)
    child = subprocess.Popen([program, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    theirs = np.zeros_like(image)
    ours_s, theirs_s = [], []
    for turn in range(repeats + 1):
        child.stdin.write("go\n")
        taken = float(child.stdout.readline())
        begin = time.perf_counter()
        cv2.filter2D(image, -1, kernel, dst=theirs, borderType=BORDER)
        other = time.perf_counter() - begin
        if turn > 0:  # the first touches the memory
            ours_s.append(taken)
            theirs_s.append(other)
    child.stdin.close()
    if child.wait() != 0:
        sys.exit(f"{program} failed")
    found, allowed = difference(image, kernel, np.load(paths[2]), theirs)
    ours = statistics.median(ours_s)
    return {"name": name, "ms": round(ours * 1e3, 2), "spread_pct": spread(ours_s), "verified": found <= allowed,
            "difference": found, "vs": f"OpenCV {cv2.__version__} filter2D",
            "vs_ms": round(statistics.median(theirs_s) * 1e3, 2), "ratio": round(statistics.median(theirs_s) / ours, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_conv2d of a release build with -DHEADRACE_BENCH=ON")
    parser.add_argument("--edge", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in sorted({1, len(cores)}):
            os.sched_setaffinity(0, cores[:count])
            cv2.setNumThreads(count)
            for name, image, kernel in cases(options.edge):
                name = f"{name} {options.edge}x{options.edge}, {count} core{'s' * (count > 1)}"
                rows.append(measure(options.program, folder, name, image, kernel, options.repeats))
                print(rows[-1]["name"], rows[-1]["ms"], "ms, ratio", rows[-1]["ratio"], file=sys.stderr)
    print(json.dumps({"bench": "conv2d", "device": "cpu", "rows": rows}, indent=1))
    kept = all(row["ratio"] >= 1 for row in rows if row["name"].startswith("float32 5x5"))
    return 0 if kept and all(row["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From file to file: `headrace run` beside NumPy's usual load, compute and save, in turns, on the same files.

    bench/files.py [--headrace PATH] [--folder DIR] [--gib 1] [--runs 5] [--device cpu]

The files lie in DIR and are in the page cache. Headrace's time is that of the whole process, its start and its sync of the output included; NumPy's
is that of load, compute and save alone, without the start of Python and without a sync. Both results are compared. Prints rows as
`headrace bench --json` does; ratio is NumPy's time over Headrace's. `cores_busy` is the share of all cores that the command kept busy: where reading,
computing and writing all need the cores, no run takes less than their work divided by the cores, and efficiency (the slowest stage alone) stays below 1.
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--headrace", default="build/release/bin/headrace")
parser.add_argument("--folder", default="/dev/shm", help="where the files lie; what a disk does is not the question here")
parser.add_argument("--gib", type=float, default=1, help="size of each input")
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--device", default="cpu")
options = parser.parse_args()

place = tempfile.mkdtemp(dir=options.folder)
path = {name: os.path.join(place, name + ".npy") for name in ("a", "b", "ours", "theirs")}
count = int(options.gib * (1 << 30)) // 4
random = np.random.default_rng(1)
for name in "ab":
    np.save(path[name], random.random(count, dtype=np.float32))

OPS = {
    "add": (["--in", path["a"], "--in", path["b"]], lambda: np.load(path["a"]) + np.load(path["b"])),
    "scale": (["--in", path["a"], "--by", "2"], lambda: np.load(path["a"]) * np.float32(2)),
    "copy": (["--in", path["a"]], lambda: np.load(path["a"])),
}


def ours(op):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([options.headrace, "run", op, *OPS[op][0], "--out", path["ours"], "--device", options.device, "--json", "-q"],
                          check=True, capture_output=True)
    seconds, after, report = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN), json.loads(done.stdout)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report["cores_busy"] = busy / seconds / len(os.sched_getaffinity(0))
    return seconds, report


def theirs(op):
    began = time.perf_counter()
    np.save(path["theirs"], OPS[op][1]())
    return time.perf_counter() - began


def spread_pct(times):
    return 100 * (max(times) - min(times)) / statistics.median(times)


rows = []
try:
    for op in OPS:
        ours(op), theirs(op)  # files and pages are there, costs are known
        times, numpy_times, reports = [], [], []
        for _ in range(options.runs):
            seconds, report = ours(op)
            times.append(seconds)
            reports.append(report)
            numpy_times.append(theirs(op))
        verified = np.array_equal(np.load(path["ours"], mmap_mode="r"), np.load(path["theirs"], mmap_mode="r"))
        rows.append({
            "name": f"{op} f32, file to file", "bytes": 4 * count, "ms": round(1e3 * statistics.median(times), 2),
            "spread_pct": round(spread_pct(times), 1), "verified": bool(verified), "vs": "NumPy load, compute, save",
            "ratio": round(statistics.median(numpy_times) / statistics.median(times), 3),
            "efficiency": statistics.median(report["efficiency"] for report in reports),
            "wall_ms": round(1e3 * statistics.median(report["wall_s"] for report in reports), 2),
            "bottleneck": reports[-1]["bottleneck"],
            "cores_busy": round(statistics.median(report["cores_busy"] for report in reports), 3),
        })
finally:
    shutil.rmtree(place)
print(json.dumps({"bench": "files", "device": options.device, "cores": os.cpu_count(), "rows": rows}, indent=1))

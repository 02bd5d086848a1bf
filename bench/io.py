#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing beside NumPy and beside a plain loop of C, in turns in one run.

Needs NumPy (Debian: python3-numpy). Prints one JSON object with the rows of `headrace bench`; a ratio above 1 says that
Headrace is the faster one. What was read is compared with NumPy's by its sum.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np


class Program:
    """bench_io, answering line by line."""

    def __init__(self, path):
        self.child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.method = ""

    def ask(self, *words):
        self.child.stdin.write(" ".join(words) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().split(" ", 1)
        if not answer[0]:
            sys.exit("bench_io ended")
        if len(answer) > 1:
            self.method = answer[1].strip()
        return answer[0]

    def timed(self, *words):
        return lambda: float(self.ask(*words))


def timed(body):
    def run():
        start = time.perf_counter()
        kept = body()
        seconds = time.perf_counter() - start
        del kept
        return seconds
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="bench_io")
    parser.add_argument("--folder", help="where the files are made (default: a temporary one)")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    program = Program(options.program)
    edge = int((options.mib << 20) ** 0.5 / 2)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        plain, fortran, big, out, other = (os.path.join(folder, name + ".npy") for name in
                                           ("plain", "fortran", "big", "out", "other"))
        array = np.random.default_rng(1).random((edge, edge), dtype=np.float32)
        np.save(plain, array)
        np.save(fortran, np.asfortranarray(array))
        np.save(big, array.astype(">f4"))
        expected = int(np.frombuffer(array.tobytes()[:array.nbytes // 8 * 8], np.uint64).sum(dtype=np.uint64))
        verified = {}
        for path in (plain, fortran, big):
            program.ask("read", path)
            verified[path] = int(program.ask("sum")) == expected

        def compare(name, ours, others, ok=True, before=None):
            times = {key: [] for key in ["ours", *others]}
            for _ in range(options.rounds):
                for key, body in [("ours", ours), *others.items()]:
                    if before is not None:
                        before()
                    times[key].append(body())
                    if key == "ours":
                        method = program.method
            for key in others:
                mine, theirs = statistics.median(times["ours"]), statistics.median(times[key])
                spread = (max(times["ours"]) - min(times["ours"])) / mine * 100
                rows.append({"name": name, "bytes": array.nbytes, "gbps": round(array.nbytes / mine / 1e9, 3),
                             "spread_pct": round(spread, 1), "verified": ok, "vs": key, "ratio": round(theirs / mine, 3),
                             "method": method})

        compare("read, cached, new memory", program.timed("read", plain),
                {"fread": program.timed("fread", plain), "numpy.load": timed(lambda: np.load(plain))}, verified[plain])
        compare("read, cached, in pieces", program.timed("stream", plain), {"fread": program.timed("fstream", plain)})
        compare("read, Fortran order", program.timed("read", fortran),
                {"numpy.ascontiguousarray(numpy.load)": timed(lambda: np.ascontiguousarray(np.load(fortran)))},
                verified[fortran])
        compare("read, big-endian", program.timed("read", big),
                {"numpy.load.astype": timed(lambda: np.load(big).astype("<f4"))}, verified[big])
        compare("read, not cached", program.timed("stream", plain), {"fread": program.timed("fstream", plain)},
                before=lambda: program.ask("drop", plain))
        compare("read, direct", program.timed("direct", plain), {"fread, not cached": program.timed("fstream", plain)},
                before=lambda: program.ask("drop", plain))
        program.ask("read", plain)
        compare("write, not synced", program.timed("write", out),
                {"fwrite": program.timed("fwrite", other), "numpy.save": timed(lambda: np.save(other, array))})
        written = bool((np.load(out) == array).all())
        for row in rows:
            if row["name"].startswith("write"):
                row["verified"] = written
        compare("write, synced", program.timed("writes", out), {"fwrite, fsync": program.timed("fwrites", other)},
                written)
    json.dump({"bench": "io", "cores": os.cpu_count(), "rows": rows}, sys.stdout, indent=1)
    print()
    return 0 if all(row["verified"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

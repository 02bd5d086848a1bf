#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast `headrace audit` reads and judges, and in how much memory: audit_reading.py HEADRACE [TRACE.json[.gz]] [--large].

Without a trace, one is made: a PyTorch-like mixture of Python frames, operators, calls and GPU work, 55 MB of JSON. The same
file is loaded with Python's json for comparison. --large adds 1 GB of JSON and an Nsight-like SQLite file of a million rows.
Times are CPU seconds (user and system) of the whole command, median of five, so that other work on the machine does not count.
"""
import gzip
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time


def event(number, at):
    """One step of a made-up program: frames and operators around one launch or copy."""
    frame = {"ph": "X", "cat": "python_function", "name": f"torch/nn/modules/module.py({number % 2000}): _call_impl", "pid": 1,
             "tid": 1, "ts": at, "dur": 31.5, "args": {"Python parent id": number, "Python id": number + 1, "Ev Idx": number}}
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": at + 1, "dur": 28.25,
                "args": {"External id": number, "Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"],
                         "Input type": ["float", "float", "float", "Scalar", "Scalar"],
                         "Input Dims": [[1024], [64, 1024], [1024, 1024], [], []], "Ev Idx": number}}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 9, "dur": 4.75,
            "args": {"External id": number, "cbid": 211, "correlation": number}}
    kernel = {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_tn", "pid": 0, "tid": 7, "ts": at + 15, "dur": 20.125,
              "args": {"device": 0, "context": 1, "stream": 7, "correlation": number, "grid": [16, 16, 1],
                       "block": [128, 1, 1]}}
    return [frame, dict(frame, ts=at + 0.5), dict(frame, ts=at + 0.75), operator, dict(operator, ts=at + 2), call, kernel]


def write_json(path, size):
    """Blocks of 5 MB, over and over: what is read costs the same whether it was read before or not."""
    parts, length, number = [], 0, 1
    while length < 5e6:
        parts.append(",\n".join(json.dumps(part) for part in event(number, 40.0 * number)))
        length += len(parts[-1]) + 2
        number += 1
    block = ",\n".join(parts)
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"schemaVersion":1,"traceEvents":[' + block)
        for _ in range(int(size / length) - 1):
            out.write(",\n" + block)
        out.write("]}")


def write_sqlite(path, rows):
    base = sqlite3.connect(path)
    base.executescript("""
        CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES(1, 'cudaLaunchKernel_v7000'), (2, 'kernel_a');
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
            globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);
        """)
    process = 111 << 24
    base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, 1)",
                     ((1000 * i, 1000 * i + 100, process + 111, i) for i in range(rows // 2)))
    base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, 0, 1, 7, ?, ?, 2, 2, 16, 16, 1, 128, 1, 1)",
                     ((1000 * i + 300, 1000 * i + 900, i, process) for i in range(rows // 2)))
    base.commit()
    base.close()


def run(headrace, path):
    """CPU seconds and peak memory of one audit."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        done = subprocess.run([headrace, "audit", path, "--json"], stdout=subprocess.DEVNULL, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]).encode())
        os._exit(done.returncode)
    os.close(write)
    answer = os.read(read, 4096)
    os.close(read)
    os.waitpid(child, 0)
    return json.loads(answer)


def python_seconds(path):
    begin = time.process_time()
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as text:
        json.load(text)
    return time.process_time() - begin


def report(what, headrace, path, times=5, compare=False):
    runs = sorted(run(headrace, path) for _ in range(times))
    seconds, memory = runs[len(runs) // 2]
    size = os.path.getsize(path)
    line = f"{what:32} {size / 1e6:8.1f} MB  {seconds:6.3f} s CPU  {size / 1e6 / seconds:7.0f} MB/s  {memory / 1e6:7.1f} MB of memory"
    if compare:
        other = sorted(python_seconds(path) for _ in range(3))[1]
        line += f"  Python's json: {other:.3f} s, {other / seconds:.1f} times as long"
    print(line, flush=True)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not words:
        sys.exit(__doc__)
    headrace = words[0]
    with tempfile.TemporaryDirectory() as folder:
        if len(words) > 1:
            report(os.path.basename(words[1]), headrace, words[1], compare=True)
        else:
            path = os.path.join(folder, "trace.json")
            write_json(path, 55e6)
            report("JSON", headrace, path, compare=True)
        if "--large" in sys.argv:
            path = os.path.join(folder, "large.json")
            write_json(path, 1e9)
            report("JSON, large", headrace, path, times=1)
            os.unlink(path)
            path = os.path.join(folder, "million.sqlite")
            write_sqlite(path, 1000000)
            report("SQLite, a million rows", headrace, path, times=3)


if __name__ == "__main__":
    main()

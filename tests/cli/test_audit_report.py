# SPDX-License-Identifier: Apache-2.0
"""headrace audit as scripts and people meet it: the JSON's keys and sums, the text's width, files that open again."""
import gzip
import json
import os
import re
import sqlite3
import stat
import subprocess
import tempfile
import unittest

HEADRACE = os.environ["HEADRACE"]
TRACES = os.path.join(os.environ["HEADRACE_SOURCE"], "tests", "data", "traces")
NAMES = sorted(name for name in os.listdir(TRACES) if name.endswith(".json.gz"))


def audit(*arguments, **more):
    return subprocess.run([HEADRACE, "audit", *arguments], capture_output=True, text=True, timeout=120, **more)


def report(name, *arguments):
    done = audit(os.path.join(TRACES, name), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(path, events, **members):
    with open(path, "w", encoding="utf-8") as out:
        json.dump({**members, "traceEvents": events}, out)


def call(name, begin, length, correlation, **more):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 100, "tid": 1, "ts": begin, "dur": length,
            "args": {"correlation": correlation, **more}}


def work(category, name, begin, length, correlation, stream=7, **more):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": begin, "dur": length,
            "args": {"correlation": correlation, "device": 0, "context": 1, "stream": stream, **more}}


def recorded(path):
    """
    A program that computes on one blocking stream and copies on another one, with a kernel on the default stream between the
    two, as headrace's own recorder writes it.
    """
    events = []
    for step in range(20):
        at = step * 400
        for i, stream in enumerate((13, 7, 14)):
            number = step * 10 + i + 1
            events.append(call("cudaMemcpyAsync" if i == 2 else "cudaLaunchKernel", 9 * step + 3 * i, 3, number))
            events.append(work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at + 270, 125, number, stream, bytes=3 << 20,
                               source_address=4096, sink_address=1 << 20) if i == 2 else
                          work("kernel", "k", at + 10 + 130 * i, 125, number, stream))
    for stream, kind in ((7, "null"), (13, "blocking"), (14, "blocking")):
        events.append({"ph": "M", "name": "stream_flag", "pid": 0, "args": {"context": 1, "stream": stream, "kind": kind}})
    write(path, events, headrace="0", recorder="cupti", lost=3)


def exported(path, processes=(5, 6)):
    """The same as an export of Nsight Systems, of two processes whose numbers are alike."""
    if os.path.exists(path):
        os.remove(path)
    base = sqlite3.connect(path)
    work_columns = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT"
    base.executescript(f"""
        CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES(1, 'cudaLaunchKernel_v7000'), (2, 'k'), (3, 'cudaMemcpyAsync_v3020');
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY({work_columns}, bytes INT, copyKind INT, srcKind INT, dstKind INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({work_columns}, shortName INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        CREATE TABLE TARGET_INFO_CUDA_DEVICE(pid INT, cudaId INT, gpuId INT);
        CREATE TABLE TARGET_INFO_CUDA_STREAM(streamId INT, processId INT, contextId INT, flag INT);""")
    for process in processes:
        base.execute("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(?, 0, ?)", (process, process - 5))
        base.executemany("INSERT INTO TARGET_INFO_CUDA_STREAM VALUES(?, ?, 1, ?)",
                         [(7, process, 3), (13, process, 1), (14, process, 1)])
        for step in range(20):
            for i, stream in enumerate((13, 7, 14)):
                at = 1000 * (step * 9 + 3 * i)
                number = step * 10 + i + 1
                base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?)",
                             (at, at + 3000, process << 24 | 9, number, 3 if i == 2 else 1))
                begin = 1000 * (step * 400 + 10 + 130 * i)
                row = (begin, begin + 125000, stream, number, process << 24)
                if i == 2:
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(?, ?, 0, 1, ?, ?, ?, 3145728, 1, 1, 2)", row)
                else:
                    base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, 0, 1, ?, ?, ?, 2)", row)
    base.commit()
    base.close()


class Json(unittest.TestCase):
    def test_every_key_of_the_contract_is_there(self):
        for name in NAMES:
            with self.subTest(name):
                made = report(name)
                self.assertLessEqual({"path", "format", "gpus", "span_ms", "kernels", "copies", "calls"}, set(made["trace"]))
                for gpu in made["gpus"]:
                    self.assertLessEqual({"id", "name", "span_ms", "kernel_ms", "copy_ms", "overlap_ms", "idle_ms", "h2d", "d2h"},
                                         set(gpu))
                    self.assertLessEqual({"bytes", "ms"}, set(gpu["h2d"]))
                self.assertIn(made["verdict"], ("found", "clean", "cannot-tell"))
                for finding in made["findings"]:
                    self.assertLessEqual({"rule", "kind", "count", "bytes", "blocked_ms", "cost_ms", "after_ms", "where", "fix"},
                                         set(finding))
                    self.assertIn(finding["kind"], ("defect", "information", "suspended"))
                    for where in finding["where"]:
                        self.assertLessEqual({"api", "thread", "stream", "count", "first_ms"}, set(where))
                self.assertLessEqual({"resource", "ms"}, set(made["bound"]))

    def test_costs_add_up_to_no_more_than_is_gained(self):
        for name in NAMES:
            with self.subTest(name):
                made = report(name, "--min-cost", "0")
                gained = made["trace"]["span_ms"] - made["all_fixed_ms"]
                for finding in made["findings"]:
                    self.assertLessEqual(made["all_fixed_ms"], finding["after_ms"])
                    self.assertLessEqual(finding["after_ms"], made["trace"]["span_ms"])
                self.assertLessEqual(sum(finding["cost_ms"] for finding in made["findings"]), gained + 1e-6)
                self.assertLess(abs(made["replay"]["error_pct"]), 2.0)

    def test_figures_are_those_of_the_trace(self):
        name = "h200_in_pinned_ring.json.gz"
        events = json.load(gzip.open(os.path.join(TRACES, name)))["traceEvents"]
        kernels = [event for event in events if event.get("cat") == "kernel"]
        copies = [event for event in events if event.get("cat") == "gpu_memcpy"]
        made = report(name)
        self.assertEqual(made["trace"]["kernels"], len(kernels))
        self.assertEqual(made["trace"]["copies"], len(copies))
        self.assertEqual(made["gpus"][0]["h2d"]["bytes"], sum(event["args"]["bytes"] for event in copies))
        self.assertAlmostEqual(made["gpus"][0]["kernel_ms"], sum(event["dur"] for event in kernels) / 1e3, places=3)

    def test_records_that_are_there_twice_count_once(self):
        with gzip.open(os.path.join(TRACES, "h200_in_pageable_one_stream.json.gz")) as packed:
            trace = json.load(packed)
        with tempfile.TemporaryDirectory() as folder:
            twice, once = os.path.join(folder, "twice.json"), os.path.join(folder, "once.json")
            events = trace.pop("traceEvents")
            write(once, events, **trace)
            write(twice, events + events, **trace)
            made, wanted = report(twice), report(once)
            self.assertIn("are there twice", audit(twice).stdout)
        self.assertGreater(made["trace"].pop("duplicates"), 100)
        self.assertNotIn("duplicates", wanted["trace"])
        self.assertEqual({**made, "trace": {**made["trace"], "path": ""}}, {**wanted, "trace": {**wanted["trace"], "path": ""}})

    def test_a_link_file_is_used(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "link.json")
            with open(link, "w") as out:
                json.dump({"bench": "link", "rows": [{"name": "h2d pageable", "gbps": 8.0},
                                                     {"name": "h2d pinned", "bytes": 4096, "gbps": 0.5},
                                                     {"name": "h2d pinned", "bytes": 1 << 28, "gbps": 25.0}]}, out)
            made = report("h200_in_pageable_one_stream.json.gz", "--link", link)
        self.assertAlmostEqual(made["link"]["h2d_gbps"], 25.0)
        after = next(finding["after_ms"] for finding in made["findings"] if finding["rule"] == "pageable-copy")
        self.assertAlmostEqual(after, 40 * (67.108864 / 25.0 + 1.373), delta=4.0)


class Text(unittest.TestCase):
    def test_a_hundred_columns_are_enough(self):
        for name in NAMES:
            with self.subTest(name):
                done = audit(os.path.join(TRACES, name))
                self.assertEqual(done.returncode, 0)
                self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 100], [])
                self.assertEqual(done.stderr, "")

    def test_the_first_line_says_how_long_it_takes_and_could_take(self):
        first = audit(os.path.join(TRACES, "h200_in_pageable_one_stream.json.gz")).stdout.splitlines()[0]
        self.assertRegex(first, r"takes 424 ms; it could take 5\d\.\d ms")

    def test_every_rule_is_listed_with_its_needs(self):
        listed = audit("--rules").stdout
        self.assertEqual([line for line in listed.splitlines() if len(line) > 100], [])
        names = re.findall(r"^([a-z]+(?:-[a-z]+)+|profiler)\b", listed, re.M)
        self.assertEqual(sorted(names), sorted("""
            pageable-copy sync-copy sync-call sync-memset null-stream same-stream alloc-in-loop pin-churn tiny-copies copy-shape
            head-of-line host-staging cpu-feeder lazy-load resource-churn queue-full driver-lock false-dependency issue-order
            sm-full managed-fault peer-via-host link-slow profiler missing-dependency event-misuse buffer-reuse read-early""".split()))
        notes = os.path.join(os.environ["HEADRACE_SOURCE"], "docs", "audit")
        for name in names:
            self.assertTrue(os.path.exists(os.path.join(notes, name + ".md")), name)


HOSTILE = "\x1b]0;title\x07\x1b[2J</script><script>alert(1)</script>\x9b31m\u202e\x7f" + "x" * 300


def with_hostile_names(path):
    with gzip.open(os.path.join(TRACES, "h200_in_pageable_one_stream.json.gz")) as packed:
        trace = json.load(packed)
    for event in trace["traceEvents"]:
        if event.get("cat") in ("cuda_runtime", "kernel", "gpu_memcpy"):
            event["name"] = event["name"] + HOSTILE
    for device in trace["deviceProperties"]:
        device["name"] += HOSTILE
    write(path, **{"events" if key == "traceEvents" else key: value for key, value in trace.items()})


class Names(unittest.TestCase):
    """Names in a trace are other people's: no rendering may hand them on to a terminal or a browser as they are."""

    def test_a_terminal_gets_no_control_characters_and_no_long_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            with_hostile_names(trace)
            for option in ([], ["--json"]):
                done = audit(trace, *option)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("2J", done.stdout)
                self.assertNotRegex(done.stdout, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
            self.assertEqual([line for line in audit(trace).stdout.splitlines() if len(line) > 100], [])
            refused = audit(trace, "--fail-on", "\x9b31m\x1b")
            self.assertNotRegex(refused.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_a_page_runs_none_of_them(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, page = os.path.join(folder, "trace.json"), os.path.join(folder, "page.html")
            with_hostile_names(trace)
            self.assertEqual(audit(trace, "--html", page).returncode, 0)
            with open(page, encoding="utf-8") as text:
                self.assertNotIn("<script>alert", text.read())


class Incomplete(unittest.TestCase):
    """A trace that lacks what the rules need is never called clean."""

    def verdict(self, events):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            write(trace, events, schemaVersion=1)
            return report(trace)

    def pairs(self, launch=True, kernel=True, copy=True, moved=True, name="Memcpy HtoD (Pinned -> Device)", joined=True):
        events = []
        for step in range(30):
            at, number = step * 100, 2 * step + 1
            events += [call("cudaLaunchKernel", at, 4, number)] if launch else []
            events += [work("kernel", "k", at + 10, 70, number if joined else 0, 7)] if kernel else []
            events += [call("cudaMemcpyAsync", at + 5, 4, number + 1)] if copy else []
            events += [work("gpu_memcpy", name, at + 20, 30, number + 1 if joined else 0, 8, bytes=1 << 20)] if moved else []
        return events

    def test_waits_for_events_without_a_name_are_told(self):
        events = self.pairs()
        for step in range(30):
            at = step * 100
            events += [call("cudaEventRecord", at + 9.2, 0.2, 500 + step), call("cudaStreamWaitEvent", at + 9.6, 0.2, 600 + step)]
        self.assertEqual(self.verdict(self.pairs())["replay"]["guessed_waits"], 0)
        self.assertGreater(self.verdict(events)["replay"]["guessed_waits"], 20)

    def test_what_is_whole_is_clean(self):
        self.assertEqual(self.verdict(self.pairs())["verdict"], "clean")

    def test_calls_without_the_work_they_ask_for(self):
        for lack, word in ((self.pairs(kernel=False), "kernels"), (self.pairs(moved=False), "copies")):
            made = self.verdict(lack)
            self.assertEqual(made["verdict"], "cannot-tell")
            self.assertIn(f"none of the {word}", made["reason"])

    def test_work_that_cannot_be_joined_with_its_calls(self):
        self.assertEqual(self.verdict(self.pairs(joined=False))["verdict"], "cannot-tell")
        made = self.verdict(self.pairs(moved=False, copy=False) + self.pairs(launch=False, kernel=False, joined=False))
        self.assertEqual(made["verdict"], "cannot-tell")
        self.assertIn("30 copies", made["reason"])

    def test_copies_of_unknown_direction_or_memory(self):
        for name, word in (("Memcpy", "directions"), ("Memcpy HtoD", "memory kinds"), ("Memcpy HtoD (Unknown -> Device)", "memory kinds")):
            made = self.verdict(self.pairs(name=name))
            self.assertEqual(made["verdict"], "cannot-tell", name)
            self.assertIn(word, made["reason"])


class Once(unittest.TestCase):
    def judged(self, uploads):
        events, at = [], 0.0
        for i in range(uploads):
            events += [call("cudaMemcpy", at, 2010, 1000 + i),
                       work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 5, 2000, 1000 + i, bytes=16 << 20)]
            at += 2020
            for k in range(20):
                events += [call("cudaLaunchKernel", at + 5 * k, 4, 100 * i + k + 1),
                           work("kernel", "k", at + 10 + 101 * k, 100, 100 * i + k + 1)]
            at += 2050
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            write(trace, events, schemaVersion=1)
            made = report(trace)
        return [finding["kind"] for finding in made["findings"] if finding["rule"] == "pageable-copy"]

    def test_what_is_copied_once_counts_as_well(self):
        """Its memory need not be pinned: it can go through a ring of pinned slots."""
        self.assertEqual(self.judged(1), ["defect"])
        self.assertEqual(self.judged(6), ["defect"])


class Exports(unittest.TestCase):
    """Exports of Nsight Systems: from a pipe, and damaged."""

    def changed(self, *statements):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.sqlite")
            exported(trace)
            base = sqlite3.connect(trace)
            for statement in statements:
                base.execute(statement)
            base.commit()
            base.close()
            return audit(trace, "--json")

    def test_from_a_pipe_it_says_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.sqlite")
            exported(trace)
            named = report(trace)
            with open(trace, "rb") as file:
                done = subprocess.run([HEADRACE, "audit", "-", "--json"], input=file.read(), capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            piped = json.loads(done.stdout)
            piped["trace"]["path"] = trace
            self.assertEqual(piped, named)

    def test_times_that_are_none_are_refused_with_table_row_and_value(self):
        for value, shown in (("NULL", "nothing"), ("'soon'", "soon"), ("1.5", "1.5")):
            done = self.changed(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = {value} WHERE rowid = 3")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f'CUPTI_ACTIVITY_KIND_KERNEL, row 3: "start" is {shown}')
        done = self.changed("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = start - 1 WHERE rowid = 2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("before it begins", done.stderr)

    def test_a_call_without_an_end_is_taken(self):
        self.assertEqual(self.changed("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = NULL WHERE rowid = 120").returncode, 0)

    def test_columns_that_every_export_has_are_missed(self):
        for table, column in (("KERNEL", "start"), ("KERNEL", "streamId"), ("RUNTIME", "globalTid")):
            done = self.changed(f"ALTER TABLE CUPTI_ACTIVITY_KIND_{table} RENAME COLUMN {column} TO another")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'no column "{column}"', done.stderr)


class Masks(unittest.TestCase):
    def test_the_same_fault_on_two_gpus_is_found_on_both(self):
        """Repairing either one alone gains nothing, as the other one takes as long as before."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.sqlite")
            exported(trace, processes=(5,))
            one = report(trace)
            exported(trace)
            two = report(trace)
        self.assertEqual([finding["rule"] for finding in one["findings"]], ["null-stream"])
        self.assertEqual([finding["rule"] for finding in two["findings"]], ["null-stream", "null-stream"])
        self.assertAlmostEqual(two["all_fixed_ms"], one["all_fixed_ms"], delta=0.01)
        self.assertEqual(sorted(finding["gpu"] for finding in two["findings"]), [0, 1])
        gain = two["trace"]["span_ms"] - two["all_fixed_ms"]
        for finding in two["findings"]:
            self.assertTrue(finding["masked"])
            self.assertAlmostEqual(finding["cost_ms"], gain / 2, delta=0.001)
            self.assertAlmostEqual(finding["together_ms"], gain, delta=0.001)
            self.assertAlmostEqual(finding["after_ms"], two["trace"]["span_ms"], delta=0.01)


    def test_copying_in_computing_and_copying_out_in_turn_is_no_clean_run(self):
        """The commonest program of all. Its three engines could work at once: then the slowest sets the pace."""
        steps, up, kernel, down = 40, 400, 300, 350
        for blocking, memory in ((True, "Pinned"), (False, "Pinned")):
            events, host = [], 0.0
            for step in range(steps):
                number = 3 * step
                begin = host + 6
                events.append(work("gpu_memcpy", f"Memcpy HtoD ({memory} -> Device)", begin, up, number + 1, bytes=up * 50000))
                events.append(call("cudaMemcpy" if blocking else "cudaMemcpyAsync", host, up + 8 if blocking else 4, number + 1))
                host += up + 9 if blocking else 5
                events.append(call("cudaLaunchKernel", host, 4, number + 2))
                begin = max(host + 6, begin + up + 1)
                events.append(work("kernel", "k", begin, kernel, number + 2))
                host += 5
                begin += kernel + 1
                events.append(work("gpu_memcpy", f"Memcpy DtoH (Device -> {memory})", begin, down, number + 3, bytes=down * 50000))
                events.append(call("cudaMemcpy" if blocking else "cudaMemcpyAsync", host, begin + down + 2 - host if blocking else 4,
                                   number + 3))
                if not blocking:
                    events.append(call("cudaStreamSynchronize", host + 5, begin + down - host - 3, 1000 + step))
                host = begin + down + 4
            with tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "trace.json")
                write(trace, events, schemaVersion=1)
                made = report(trace)
            found = {finding["rule"] for finding in made["findings"] if finding["kind"] == "defect"}
            self.assertEqual(found, {"same-stream", "sync-copy" if blocking else "sync-call"})
            self.assertAlmostEqual(made["all_fixed_ms"], (steps * up + kernel + down) / 1e3, delta=0.5)

    def test_two_directions_are_two_engines(self):
        """Short kernels, long copies both ways in one stream: what can overlap is the copies in with the copies out."""
        events, at, steps = [], 0.0, 40
        for step in range(steps):
            for i, (name, length) in enumerate((("Memcpy HtoD (Pinned -> Device)", 400), ("k", 10), ("Memcpy DtoH (Device -> Pinned)", 350))):
                number = 3 * step + i + 1
                events.append(call("cudaLaunchKernel" if name == "k" else "cudaMemcpyAsync", 5 * number, 4, number))
                events.append(work("kernel", name, at + 10, length, number) if name == "k" else
                              work("gpu_memcpy", name, at + 10, length, number, bytes=length * 50000))
                at += length + 1
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            write(trace, events, schemaVersion=1)
            made = report(trace)
        self.assertEqual([finding["rule"] for finding in made["findings"] if finding["kind"] == "defect"], ["same-stream"])
        self.assertAlmostEqual(made["all_fixed_ms"], (steps * 401 + 360) / 1e3, delta=0.3)

    def test_a_blocking_copy_comes_before_streams_of_their_own(self):
        """Own streams alone would gain as much in the replay, but a copy that holds the host cannot be put on another stream."""
        events, host, kernel_end, steps = [], 0.0, 0.0, 40
        for step in range(steps):
            begin = max(host + 5, kernel_end + 1.2)
            events.append(call("cudaMemcpy", host, begin + 84 + 2 - host, 2 * step + 1))
            events.append(work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", begin, 84, 2 * step + 1, bytes=84 * 50000))
            host = begin + 84 + 2 + 50
            events.append(call("cudaLaunchKernel", host, 4, 2 * step + 2))
            events.append(work("kernel", "k", host + 5, 300, 2 * step + 2))
            kernel_end = host + 305
            host += 4
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            write(trace, events, schemaVersion=1)
            made = report(trace)
        found = {finding["rule"]: finding for finding in made["findings"] if finding["kind"] == "defect"}
        self.assertEqual(sorted(found), ["same-stream", "sync-copy"])
        self.assertAlmostEqual(found["sync-copy"]["after_ms"], steps * (84 + 300 + 2.4) / 1e3, delta=0.3)
        self.assertAlmostEqual(found["sync-copy"]["cost_ms"], made["trace"]["span_ms"] - found["sync-copy"]["after_ms"], delta=0.01)


class ReadBacks(unittest.TestCase):
    def test_a_host_that_waits_for_each_result_is_not_called_slow(self):
        """The host submits each step once it has the result of the one before: that it does not keep up would be wrong to say."""
        for name, memory in (("cudaMemcpy", "Pinned"), ("cudaMemcpyAsync", "Pageable")):
            events, host, steps = [], 0.0, 40
            for step in range(steps):
                events += [call("cudaLaunchKernel", host, 4, 2 * step + 1), work("kernel", "k", host + 6, 300, 2 * step + 1)]
                events += [call(name, host + 5, 308, 2 * step + 2),
                           work("gpu_memcpy", f"Memcpy DtoH (Device -> {memory})", host + 308, 2, 2 * step + 2, bytes=4)]
                host += 313 + 200
            with tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "trace.json")
                write(trace, events, schemaVersion=1)
                made = report(trace)
                text = audit(trace).stdout
            self.assertEqual(made["verdict"], "clean")
            most = next(finding["at_most_ms"] for finding in made["findings"] if finding["rule"] == "sync-call")
            self.assertAlmostEqual(most, made["trace"]["span_ms"] - steps * 0.304, delta=0.4)
            self.assertIn("waits for results", " ".join(text.split()))
            self.assertNotIn("does not keep up", " ".join(text.split()))


    def test_a_repair_that_no_order_allows_is_not_foreseen(self):
        """A download that ran behind work which was submitted after it, in one stream: to wait for it earlier is impossible."""
        events, steps = [], 20
        for step in range(steps):
            at, number = step * 1000, step * 10
            events += [call("cudaLaunchKernel", at, 4, number + 1), work("kernel", "k", at + 6, 100, number + 1, 8)]
            late = step % 2 == 0
            events += [call("cudaMemcpyAsync" if late else "cudaMemcpy", at + 5, 2 if late else 110, number + 2),
                       work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + (4900 if late else 108), 2, number + 2,
                            7 if late else 8, bytes=4)]
            events += [call("cudaStreamSynchronize", at + 120, 5, number + 3, device=0, context=1, stream=8)]
            events += [call("cudaMemsetAsync", at + 900, 2, number + 4), work("gpu_memset", "Memset", at + 1910, 1, number + 4, 7)]
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            write(trace, events, schemaVersion=1)
            made = report(trace)
            self.assertGreater(made["replay"]["contradictions"], 0)
            self.assertIn("before the other", " ".join(audit(trace).stdout.split()))


class Early(unittest.TestCase):
    """What is wrong with the options is said before a command runs for hours."""

    def test_options_are_checked_before_the_command_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            witness = os.path.join(folder, "ran")
            for options in (["--fail-on", "no-such-rule"], ["--fail-on", "overlap<101"], ["--min-cost", "much"],
                            ["--link", os.path.join(folder, "none.json")]):
                done = audit(*options, "--", "touch", witness)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertFalse(os.path.exists(witness))

    def test_a_link_file_ends_where_its_object_does(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "link.json")
            with open(link, "w", encoding="utf-8") as out:
                out.write('{"rows":[{"name":"h2d pinned","gbps":25.0}]}\n{"rows":[]}')
            done = audit(os.path.join(TRACES, NAMES[0]), "--link", link)
            self.assertEqual(done.returncode, 2)
            self.assertIn("byte 45 ", done.stderr)


class Files(unittest.TestCase):
    def opens_again(self, folder, trace):
        marked = os.path.join(folder, "marked.json")
        before = report(trace, "--perfetto", marked)
        with open(marked, encoding="utf-8") as text:
            json.load(text)
        after = report(marked)
        before["trace"].pop("path")
        after["trace"].pop("path")
        self.assertEqual(after, before)

    def test_the_marked_trace_opens_again_and_says_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in NAMES:
                with self.subTest(name):
                    self.opens_again(folder, name)

    def test_so_it_does_with_flags_of_streams_and_addresses_and_two_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            for make in (recorded, exported):
                with self.subTest(make.__name__):
                    trace = os.path.join(folder, "trace")
                    make(trace)
                    rules = {finding["rule"] for finding in report(trace)["findings"]}
                    self.assertIn("null-stream", rules)
                    self.opens_again(folder, trace)

    def test_the_page_is_whole_and_loads_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "report.html")
            self.assertEqual(audit(os.path.join(TRACES, NAMES[0]), "--html", page).returncode, 0)
            with open(page, encoding="utf-8") as read:
                text = read.read()
            self.assertTrue(text.rstrip().endswith("</html>"))
            self.assertNotRegex(text, r"""(src|href)\s*=\s*["']https?:""")
            self.assertEqual(os.listdir(folder), ["report.html"])

    def test_what_is_no_plain_file_is_written_and_not_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(TRACES, NAMES[0])
            real, link, pipe = (os.path.join(folder, name) for name in ("real", "link", "pipe"))
            os.symlink("real", link)
            os.mkfifo(pipe)
            with open(real, "w", encoding="utf-8"):
                pass
            self.assertEqual(audit(trace, "--html", link).returncode, 0)
            self.assertTrue(os.path.islink(link))
            self.assertGreater(os.path.getsize(real), 1000)
            reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
            self.assertEqual(audit(trace, "--html", pipe).returncode, 0)
            with open(real, "rb") as written:
                self.assertEqual(reader.communicate(timeout=60)[0], written.read())
            self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
            self.assertEqual(sorted(os.listdir(folder)), ["link", "pipe", "real"])

    def test_a_trace_comes_from_a_pipe_too(self):
        with open(os.path.join(TRACES, NAMES[0]), "rb") as trace:
            done = subprocess.run([HEADRACE, "audit", "-", "--json"], stdin=trace, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["trace"]["format"], "kineto")


if __name__ == "__main__":
    unittest.main()

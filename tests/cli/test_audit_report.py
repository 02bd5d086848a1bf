# SPDX-License-Identifier: Apache-2.0
"""headrace audit as scripts and people meet it: the JSON's keys and sums, the text's width, files that open again."""
import gzip
import json
import os
import re
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
                gained = made["replay"]["span_ms"] - made["all_fixed_ms"]
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
        names = re.findall(r"^([a-z]+(?:-[a-z]+)+|profiler)\b", listed, re.M)
        self.assertEqual(sorted(names), sorted("""
            pageable-copy sync-copy sync-call sync-memset null-stream same-stream alloc-in-loop pin-churn tiny-copies copy-shape
            head-of-line host-staging cpu-feeder lazy-load resource-churn queue-full driver-lock false-dependency issue-order
            sm-full managed-fault peer-via-host link-slow profiler missing-dependency event-misuse buffer-reuse read-early""".split()))
        notes = os.path.join(os.environ["HEADRACE_SOURCE"], "docs", "audit")
        for name in names:
            self.assertTrue(os.path.exists(os.path.join(notes, name + ".md")), name)


class Files(unittest.TestCase):
    def test_the_marked_trace_opens_again_and_says_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in NAMES:
                with self.subTest(name):
                    marked = os.path.join(folder, "marked.json")
                    before = report(name, "--perfetto", marked)
                    with open(marked, encoding="utf-8") as text:
                        json.load(text)
                    done = audit(marked, "--json")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    after = json.loads(done.stdout)
                    for key in ("span_ms", "kernels", "copies"):
                        self.assertEqual(after["trace"][key], before["trace"][key])
                    self.assertEqual(after["gpus"][0]["overlap_ms"], before["gpus"][0]["overlap_ms"])

    def test_the_page_is_whole_and_loads_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "report.html")
            self.assertEqual(audit(os.path.join(TRACES, NAMES[0]), "--html", page).returncode, 0)
            with open(page, encoding="utf-8") as read:
                text = read.read()
            self.assertTrue(text.rstrip().endswith("</html>"))
            self.assertNotRegex(text, r"""(src|href)\s*=\s*["']https?:""")
            self.assertEqual(os.listdir(folder), ["report.html"])

    def test_a_trace_comes_from_a_pipe_too(self):
        with open(os.path.join(TRACES, NAMES[0]), "rb") as trace:
            done = subprocess.run([HEADRACE, "audit", "-", "--json"], stdin=trace, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["trace"]["format"], "kineto")


if __name__ == "__main__":
    unittest.main()

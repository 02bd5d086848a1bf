# SPDX-License-Identifier: Apache-2.0
"""The JSON that scripts depend on: keys, types, and figures that agree with each other; and the trace file."""
import json
import os
import unittest

import numpy as np

from support import CommandTest

NUMBER = (int, float)
RUN_KEYS = {
    "headrace": str, "op": str, "device": str, "device_name": str, "inputs": list, "outputs": list, "chunk_bytes": int,
    "chunks": int, "depth": int, "pinned_bytes": int, "setup_s": NUMBER, "wall_s": NUMBER, "stages": dict, "floor_s": NUMBER,
    "bottleneck": str, "efficiency": NUMBER, "overlap": NUMBER,
}


class Json(CommandTest):
    def run_json(self, *arguments):
        return json.loads(self.run_well("run", *arguments, "--json", "-q"))

    def check_stages(self, report):
        self.assertLessEqual({"read", "h2d", "compute", "d2h", "write"}, set(report["stages"]))
        for name, stage in report["stages"].items():
            self.assertIsInstance(stage["busy_s"], NUMBER, name)
            self.assertIsInstance(stage["bytes"], int, name)
            self.assertIn("ceiling_gbps", stage)
            self.assertLessEqual(stage["busy_s"], report["wall_s"] * 1.05 + 1e-3, name)

    def test_run(self):
        for device in ["cpu", "cpu:discrete"]:
            a = np.arange(1 << 20, dtype="f4")
            np.save(self.path("a.npy"), a)
            report = self.run_json("add", "--in", "a.npy", "--in", "a.npy", "--out", "c.npy", "--device", device, "--chunk", "256K")
            for key, kind in RUN_KEYS.items():
                self.assertIsInstance(report[key], kind, key)
            self.assertIn("result", report)
            self.assertIsNone(report["max_abs_diff"])
            self.assertEqual(report["op"], "add")
            self.assertEqual(report["device"], device)
            self.assertEqual([array["path"] for array in report["inputs"]], ["a.npy", "a.npy"])
            self.assertEqual({key: report["outputs"][0][key] for key in ("path", "dtype", "shape", "bytes")},
                             {"path": "c.npy", "dtype": "f32", "shape": [1 << 20], "bytes": 4 << 20})
            self.check_stages(report)
            self.assertGreaterEqual(report["chunks"], 16)
            self.assertTrue(0 <= report["overlap"] <= 1)
            self.assertTrue(0 < report["efficiency"] <= 1.05, report["efficiency"])
            self.assertIn(report["bottleneck"], report["stages"])

    def test_discrete_device_copies_and_shared_one_does_not(self):
        np.save(self.path("a.npy"), np.zeros(1 << 20, dtype="u1"))
        discrete = self.run_json("copy", "--in", "a.npy", "--out", "c.npy", "--device", "cpu:discrete")
        self.assertEqual(discrete["stages"]["h2d"]["bytes"], 1 << 20)
        self.assertEqual(discrete["stages"]["d2h"]["bytes"], 1 << 20)
        shared = self.run_json("copy", "--in", "a.npy", "--out", "c.npy", "--device", "cpu")
        self.assertEqual(shared["stages"]["h2d"]["bytes"], 0)

    def test_encoding_an_image_is_part_of_the_floor(self):
        a = np.random.default_rng(5).integers(0, 256, (1500, 1500), dtype="u1")
        np.save(self.path("a.npy"), a)
        report = self.run_json("conv2d", "--filter", "box3", "--in", "a.npy", "--out", "c.png", "--device", "cpu")
        self.assertGreater(report["stages"]["write"]["busy_s"], 0)
        self.assertGreaterEqual(report["floor_s"], 0.99 * report["stages"]["write"]["busy_s"])

    def test_lengths_that_the_run_finds_out(self):
        a = np.arange(70_007 * 3, dtype="f4").reshape(-1, 3)
        raw = ["--in", "-", "--dtype", "f32", "--shape", "?,3"]
        for device in ["cpu", "cpu:discrete"]:
            for op, output in [("copy", ["--out", "c.npy"]), ("sum", [])]:
                report = json.loads(self.run_well("run", op, *raw, *output, "--json", "-q", "--device", device, "--chunk", "64K",
                                                  input=a.tobytes()))
                for array in report["inputs"] + report["outputs"]:
                    self.assertEqual((array["shape"], array["bytes"]), ([70_007, 3], a.nbytes), (op, device, array["path"]))

    def test_results(self):
        np.save(self.path("a.npy"), np.arange(1000, dtype="i4"))
        np.save(self.path("f.npy"), np.full(1000, 0.5))
        self.assertEqual(self.run_json("sum", "--in", "a.npy")["result"], 499500)
        self.assertEqual(self.run_json("sum", "--in", "f.npy")["result"], 500.0)
        self.assertRegex(self.run_json("checksum", "--in", "a.npy")["result"], "^[0-9a-f]{8}$")
        self.assertEqual(self.run_json("sum", "--in", "a.npy")["outputs"], [])

    def test_verify(self):
        np.save(self.path("a.npy"), np.random.default_rng(1).standard_normal((200, 300)).astype("f4"))
        for device in ["cpu", "cpu:discrete"]:
            report = self.run_json("conv2d", "--filter", "gauss5", "--in", "a.npy", "--out", "c.npy", "--verify", "--device", device)
            self.assertEqual(report["max_abs_diff"], 0)
            report = self.run_json("sum", "--in", "a.npy", "--verify", "--device", device)
            self.assertEqual(report["max_abs_diff"], 0)

    def test_strange_names_stay_well_formed(self):
        name = 'qu"ote\\back\nline\tté.npy'
        np.save(self.path(name), np.zeros(3))
        report = self.run_json("sum", "--in", name)
        self.assertEqual(report["inputs"][0]["path"], name)
        broken = os.fsencode(self.folder) + b"/\xff\xfe.npy"
        os.rename(os.fsencode(self.path(name)), broken)
        report = json.loads(self.run_well("run", "sum", "--in", os.fsdecode(broken), "--json", "-q").decode("utf-8"))
        self.assertIn("\ufffd", report["inputs"][0]["path"])

    def test_info(self):
        info = json.loads(self.run_well("info", "--json"))
        self.assertLessEqual({"headrace", "host", "limits", "devices", "absent"}, set(info))
        cpu = next(device for device in info["devices"] if device["device"] == "cpu")
        self.assertTrue(cpu["shares_host_memory"])
        self.assertGreaterEqual(cpu["compute_units"], 1)
        self.assertGreater(info["host"]["memory_bytes"], 1 << 20)
        # Of our own files none is taken for a broken module.
        self.assertFalse([absent for absent in info["absent"] if "no module of Headrace" in absent], info["absent"])

    def test_list(self):
        ops = json.loads(self.run_well("run", "--list", "--json"))
        self.assertEqual([op["op"] for op in ops],
                         ["add", "scale", "normalize", "convert", "conv2d", "matmul", "sum", "checksum", "copy"])
        scale = next(op for op in ops if op["op"] == "scale")
        self.assertEqual([parameter["name"] for parameter in scale["parameters"]], ["by", "plus"])
        normalize = next(op for op in ops if op["op"] == "normalize")
        self.assertEqual(normalize["dtypes"], ["u8"])

    def test_trace(self):
        np.save(self.path("a.npy"), np.zeros(1 << 20, dtype="f4"))
        report = self.run_json("scale", "--by", "2", "--in", "a.npy", "--out", "c.npy", "--device", "cpu:discrete", "--chunk", "512K",
                               "--trace", "t.json")
        with open(self.path("t.json"), encoding="utf-8") as file:
            trace = json.load(file)
        self.assertEqual(next(iter(trace)), "headrace")
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertTrue(all(event["ts"] >= 0 and event["dur"] >= 0 for event in events))
        up = [event for event in events if event["name"].startswith("Memcpy HtoD")]
        kernels = [event for event in events if event["cat"] == "kernel"]
        self.assertEqual(len(up), report["chunks"])
        self.assertEqual(sum(event["args"]["bytes"] for event in up), 4 << 20)
        self.assertEqual({event["name"] for event in kernels}, {"scale"})
        self.assertEqual({event["args"]["stream"] for event in kernels}.isdisjoint({event["args"]["stream"] for event in up}), True)
        stages = {event["name"] for event in events if event["cat"] == "headrace_stage"}
        self.assertLessEqual({"read", "write"}, stages)
        # Each chunk is copied before it is computed.
        begun = {event["args"]["chunk"]: event["ts"] for event in kernels}
        for event in up:
            self.assertGreaterEqual(begun[event["args"]["chunk"]] + 1, event["ts"] + event["dur"])
        self.assertEqual(self.files(), ["a.npy", "c.npy", "t.json"])


if __name__ == "__main__":
    unittest.main()

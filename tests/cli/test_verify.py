# SPDX-License-Identifier: Apache-2.0
"""--verify finds one wrong bit in an output, and tells what an op's bound allows from what it does not."""
import json
import os
import unittest

import numpy as np

from support import CommandTest

FLIP = os.environ["HEADRACE_FLIP"]


class Verify(CommandTest):
    def run_flipped(self, at, bit, *arguments):
        self.environment.update(LD_PRELOAD=FLIP, HR_FLIP_AT=str(at), HR_FLIP_BIT=str(bit),
                                ASAN_OPTIONS="verify_asan_link_order=0:" + self.environment.get("ASAN_OPTIONS", ""))
        return self.run_command("run", *arguments, "--out", "out.npy", "--device", "cpu", "--verify", "-q", "--json")

    def setUp(self):
        super().setUp()
        np.save(self.path("a.npy"), np.random.default_rng(1).random((300, 200)).astype("f4") + 1)
        np.save(self.path("i.npy"), np.arange(60000, dtype="i8") << 40)

    def test_nothing_wrong(self):
        done = self.run_flipped(0, 0, "scale", "--by", "3", "--in", "a.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["max_abs_diff"], 0)

    def test_one_bit_of_an_exact_op(self):
        # The lowest bit of element 100 of some write.
        done = self.run_flipped(400, 1, "scale", "--by", "3", "--in", "a.npy")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)
        self.assertRegex(done.stderr.decode(), r"^headrace: out.npy: element \d+ differs from the CPU's by ")
        ours, want = np.load(self.path("out.npy")), np.load(self.path("a.npy")) * np.float32(3)
        wrong = np.flatnonzero(ours != want)
        self.assertEqual(len(wrong), 1)
        self.assertIn(f"element {wrong[0]} ", done.stderr.decode())
        self.assertAlmostEqual(json.loads(done.stdout)["max_abs_diff"], float(np.abs(ours - want).max()), places=12)

    def test_one_bit_of_a_wide_integer(self):
        done = self.run_flipped(800, 1, "copy", "--in", "i.npy")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["max_abs_diff"], 1)

    def test_within_and_beyond_the_bound(self):
        # The lowest bit of a sum of nine is rounding; the highest bit of its fraction is not.
        near = self.run_flipped(400, 1, "conv2d", "--filter", "box3", "--in", "a.npy")
        self.assertEqual(near.returncode, 0, near.stderr)
        difference = json.loads(near.stdout)["max_abs_diff"]
        self.assertTrue(0 < difference < 1e-6, difference)
        far = self.run_flipped(402, 0x40, "conv2d", "--filter", "box3", "--in", "a.npy")
        self.assertEqual(far.returncode, 1, far.stderr)
        self.assertGreater(json.loads(far.stdout)["max_abs_diff"], 0.1)


if __name__ == "__main__":
    unittest.main()

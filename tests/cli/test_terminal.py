# SPDX-License-Identifier: Apache-2.0
"""What a person at a terminal sees: a progress line that goes away, a timeline as wide as the window, no binary on the screen."""
import fcntl
import os
import pty
import struct
import termios
import time
import unittest

import numpy as np

from support import CommandTest


class Terminal(CommandTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("a.npy"), np.zeros(8 << 20, dtype="u1"))

    def on_terminal(self, *arguments, columns=80, stdout_too=False, **environment):
        """Runs with standard error on a terminal; returns the status and what the terminal got."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.environment.update(environment)
        process = self.start(*arguments, stderr=theirs, stdout=theirs if stdout_too else None)
        os.close(theirs)
        seen = b""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break  # the other end is closed
            if not piece:
                break
            seen += piece
        os.close(ours)
        return process.wait(timeout=60), seen.decode()

    def test_progress(self):
        status, seen = self.on_terminal("run", "copy", "--in", "a.npy", "--out", "b.npy", "--device", "cpu:discrete,h2d=8M,d2h=8M",
                                        "--chunk", "128K")
        self.assertEqual(status, 0, seen)
        lines = [line for line in seen.split("\r") if "GB/s" in line and "copy  " in line and "%" in line]
        self.assertGreaterEqual(len(lines), 3, seen)
        self.assertTrue(any("s left" in line for line in lines), seen)
        # The last thing before the report is an empty line where the progress stood.
        self.assertIn("\r\033[Kcopy on cpu:discrete", seen)

    def test_no_progress(self):
        for option in ["--no-progress", "--quiet"]:
            status, seen = self.on_terminal("run", "copy", "--in", "a.npy", "--out", "b.npy", "--device",
                                            "cpu:discrete,h2d=20M,d2h=20M", "--chunk", "128K", option)
            self.assertEqual(status, 0, seen)
            self.assertNotIn("\033", seen)

    def test_timeline_fits_the_window(self):
        for columns in [40, 80, 200]:
            status, seen = self.on_terminal("run", "copy", "--in", "a.npy", "--out", "b.npy", "--timeline", "--no-progress", "-q",
                                            columns=columns, LC_ALL="C.UTF-8")
            self.assertEqual(status, 0, seen)
            rows = seen.replace("\r", "").splitlines()
            self.assertTrue(any(row.startswith("read") and "%" in row for row in rows), seen)
            self.assertEqual({len(row) for row in rows if row.startswith(("read", "compute", "write"))}, {columns - 1}, seen)
            self.assertIn("█", seen)

    def test_timeline_without_utf8_is_ascii(self):
        status, seen = self.on_terminal("run", "copy", "--in", "a.npy", "--out", "b.npy", "--timeline", "-q", LC_ALL="C")
        self.assertEqual(status, 0, seen)
        self.assertTrue(seen.isascii(), seen)

    def test_binary_is_kept_off_the_screen(self):
        status, seen = self.on_terminal("run", "copy", "--in", "a.npy", "--out", "-", stdout_too=True)
        self.assertEqual(status, 2, seen)
        self.assertIn("is a terminal", seen)


if __name__ == "__main__":
    unittest.main()

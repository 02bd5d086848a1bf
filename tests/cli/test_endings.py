# SPDX-License-Identifier: Apache-2.0
"""How a run ends when something is in its way: signals, kills, closed pipes, full disks. The old output always survives."""
import ctypes
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import unittest

import numpy as np

from support import CommandTest, HEADRACE

# Slow enough to be caught in the middle: 64 MiB through a link of 8 MB/s.
SLOW = ["--device", "cpu:discrete,h2d=8M,d2h=8M", "--chunk", "256K"]

LIBC = ctypes.CDLL(None)


def obey_modes():
    """In a child of root's: files are no more open to it than to others. As another user it could not run the command everywhere."""
    LIBC.prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def catches(pid, number):
    """Has the process a handler for the signal?"""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        caught = next(line for line in file if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> (number - 1) & 1 == 1


class Endings(CommandTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("a.npy"), np.zeros(64 << 20, dtype="u1"))
        with open(self.path("out.npy"), "w", encoding="ascii") as file:
            file.write("the old output")

    def assert_old_output(self, files=("a.npy", "out.npy")):
        with open(self.path("out.npy"), encoding="ascii") as file:
            self.assertEqual(file.read(), "the old output")
        if files:
            self.assertEqual(self.files(), sorted(files))

    def start_slow(self, **options):
        process = self.start("run", "copy", "--in", "a.npy", "--out", "out.npy", *SLOW, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.stderr.close)
        # However long the machine takes to start it: it is under way once it minds signals.
        until = time.monotonic() + 60
        while not catches(process.pid, signal.SIGINT) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        self.assertIsNone(process.poll(), "the run ended before it could be interrupted")
        return process

    def test_interrupt(self):
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            process = self.start_slow()
            asked = time.monotonic()
            process.send_signal(number)
            stderr = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 130, stderr)
            self.assertLess(time.monotonic() - asked, 5)
            self.assert_one_line(stderr)
            self.assert_old_output()

    def interrupt(self, *arguments, **options):
        """Starts the command, which waits for something that never comes, and interrupts it."""
        process = self.start(*arguments, stderr=subprocess.PIPE, **options)
        until = time.monotonic() + 60
        while not catches(process.pid, signal.SIGINT) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, stderr)
        self.assert_one_line(stderr)

    def test_interrupt_of_waits_before_the_run(self):
        os.mkfifo(self.path("pipe"))
        np.save(self.path("image.npy"), np.zeros((9, 9), dtype="u1"))
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        self.interrupt("run", "copy", "--in", "-", "--out", "out.npy", stdin=reader)  # for the first byte
        self.interrupt("run", "copy", "--in", "pipe", "--out", "out.npy")  # for a writer
        self.interrupt("run", "conv2d", "--in", "image.npy", "--kernel", "pipe", "--out", "out.npy")
        self.interrupt("run", "copy", "--in", "image.npy", "--out", "pipe")  # for a reader
        self.assert_old_output(files=("a.npy", "image.npy", "out.npy", "pipe"))

    def test_interrupt_of_a_bench(self):
        self.interrupt("bench", "all", "--device", "cpu", stdout=subprocess.DEVNULL)

    def test_interrupt_of_the_check(self):
        # Caught between the moment when the output has its name and the end of the check, which is short: tried again when missed.
        for _ in range(50):
            process = self.start("run", "copy", "--in", "a.npy", "--out", "new.npy", "--verify", "-q", stderr=subprocess.PIPE)
            while process.poll() is None and not os.path.exists(self.path("new.npy")):
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            stderr = process.communicate(timeout=60)[1]
            whole = os.path.getsize(self.path("new.npy")) > 64 << 20
            os.remove(self.path("new.npy"))
            self.assertTrue(whole)
            if process.returncode == 130:
                self.assert_one_line(stderr)
                self.assertIn(b"not checked", stderr)
                return
            self.assertEqual((process.returncode, stderr), (0, b""))
        self.fail("no check was interrupted")

    def test_second_interrupt_kills(self):
        process = self.start_slow()
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        process.wait(timeout=60)
        self.assertIn(process.returncode, (130, -signal.SIGINT))
        self.assert_old_output(files=())

    def test_ignored_interrupt_stays_ignored(self):
        done = self.run_command("run", "sum", "--in", "a.npy", "-q", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual((done.returncode, done.stdout), (0, b"0\n"))

    def test_kill(self):
        process = self.start_slow()
        process.kill()
        process.wait()
        self.assert_old_output(files=())

    def test_closed_pipe(self):
        reader, writer = os.pipe()
        process = self.start("run", "copy", "--in", "a.npy", "--out", "-", stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        os.read(reader, 1000)
        os.close(reader)
        stderr = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1, stderr)
        self.assert_one_line(stderr)
        self.assertIn(b"pipe", stderr)

    def test_closed_pipe_for_a_result(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = self.run_command("run", "sum", "--in", "a.npy", "-q", stdout=writer, stderr=subprocess.PIPE, capture_output=False)
        os.close(writer)
        self.assertEqual(done.returncode, 1)
        self.assert_one_line(done.stderr)

    def test_full_standard_output(self):
        with open("/dev/full", "wb") as full:
            done = self.run_command("info", stdout=full, stderr=subprocess.PIPE, capture_output=False)
            self.assertEqual(done.returncode, 1)
            self.assert_one_line(done.stderr)
            self.assertIn(b"No space left", done.stderr)

    def test_closed_standard_files(self):
        # What is opened next must not take their numbers: reports would be written into it.
        a = np.arange(1000, dtype="f4")
        np.save(self.path("small.npy"), a)
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]:
            for device in ["cpu", "cpu:discrete"]:
                command = f'"$0" run copy --in small.npy --out c.npy --device {device} --json --timeline {closed}'
                done = subprocess.run(["sh", "-c", command, HEADRACE], cwd=self.folder, env=self.environment, capture_output=True,
                                      timeout=60)
                self.assertEqual(done.returncode, 1 if ">&- " in closed + " " and closed != "2>&-" else 0, (closed, done.stderr))
                np.testing.assert_array_equal(np.load(self.path("c.npy")), a)
        for command in ['"$0" run copy --in small.npy --out - -q >&-', '"$0" run copy --in - --out c.npy -q <&-',
                        '"$0" run copy --in small.npy --out - -q 1<small.npy', '"$0" run sum --in small.npy -q >&-']:
            done = subprocess.run(["sh", "-c", command, HEADRACE], cwd=self.folder, env=self.environment, capture_output=True,
                                  timeout=60)
            self.assertIn(done.returncode, (1, 2), command)
            self.assert_one_line(done.stderr)
            np.testing.assert_array_equal(np.load(self.path("small.npy")), a)

    def test_input_that_ends_early(self):
        with open(self.path("a.npy"), "rb") as file:
            head = file.read(1 << 20)
        done = self.run_command("run", "copy", "--in", "-", "--out", "out.npy", input=head)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assert_one_line(done.stderr)
        self.assert_old_output()

    def test_limited_file_size(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = self.run_command("run", "copy", "--in", "a.npy", "--out", "out.npy", preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)
        self.assert_old_output()

    def test_full_disk(self):
        # A small disk of our own, in a mount namespace of our own; not every machine allows that.
        os.mkdir(self.path("disk"))
        script = ('mount -t tmpfs -o size=4m none disk || exit 77; echo old > disk/out.npy; '
                  '"$0" run copy --in a.npy --out disk/out.npy; code=$?; ls -A disk; cat disk/out.npy; exit $code')
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, HEADRACE], cwd=self.folder, env=self.environment,
                              capture_output=True, timeout=60)
        if done.returncode == 77 or b"unshare" in done.stderr:
            self.skipTest("no mount namespace for a full disk: " + done.stderr.decode().strip())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)
        self.assertEqual(done.stdout, b"out.npy\nold\n")

    def test_unwritable_folder(self):
        os.mkdir(self.path("closed"), 0o555)
        probe = subprocess.run(["sh", "-c", "touch closed/probe"], cwd=self.folder, capture_output=True, preexec_fn=obey_modes)
        if probe.returncode == 0:
            self.skipTest("root cannot be made to obey the modes of files here")
        done = self.run_command("run", "copy", "--in", "a.npy", "--out", "closed/out.npy", preexec_fn=obey_modes)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)
        self.assertEqual(os.listdir(self.path("closed")), [])

    def test_missing_folder(self):
        done = self.run_command("run", "copy", "--in", "a.npy", "--out", "none/out.npy")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)

    def test_trace_into_a_pipe(self):
        # A pipe stays one: no file is put in its place.
        os.mkfifo(self.path("pipe"))
        reader = os.open(self.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.run_well("run", "sum", "--in", "a.npy", "--trace", "pipe", "-q", "--chunk", "64M")
        self.assertTrue(os.read(reader, 65536).startswith(b'{"headrace":'))
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.path("pipe")).st_mode))

    def test_unwritable_trace_keeps_the_output(self):
        done = self.run_command("run", "copy", "--in", "a.npy", "--out", "new.npy", "--trace", "none/t.json", "-q")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_one_line(done.stderr)
        self.assertEqual(np.load(self.path("new.npy")).nbytes, 64 << 20)


if __name__ == "__main__":
    sys.exit(unittest.main())

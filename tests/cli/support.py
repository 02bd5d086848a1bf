# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: an empty folder for each test, and running the command in it."""
import os
import shutil
import subprocess
import tempfile
import unittest

HEADRACE = os.path.abspath(os.environ["HEADRACE"])
SANITIZE = os.environ.get("HEADRACE_SANITIZE", "")


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.folder, ".cache"), LC_ALL="C")

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if not name.startswith(".cache"))

    def start(self, *arguments, **options):
        return subprocess.Popen([HEADRACE, *arguments], cwd=self.folder, env=self.environment, **options)

    def run_command(self, *arguments, **options):
        options.setdefault("capture_output", True)
        options.setdefault("timeout", 120)
        return subprocess.run([HEADRACE, *arguments], cwd=self.folder, env=self.environment, **options)

    def run_well(self, *arguments, **options):
        """Runs, expects success, and returns standard output."""
        done = self.run_command(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"headrace {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def assert_one_line(self, stderr):
        """A failure is one line, and says what failed and why."""
        text = stderr.decode()
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("headrace: "), text)
        self.assertGreaterEqual(text.count(": "), 2, text)

# SPDX-License-Identifier: Apache-2.0
"""Every op from file to file, compared with NumPy."""
import io
import json
import os
import shutil
import subprocess
import unittest
import zlib

import numpy as np

from support import CommandTest, HEADRACE

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
DEVICES = ["cpu", "cpu:discrete"]


def random_array(dtype, shape, seed=1):
    source = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return source.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    return source.integers(limits.min, limits.max, size=shape, dtype=kind, endpoint=True)


def saturate(values, dtype):
    """float64 → integer: round to nearest even, saturate, NaN becomes 0."""
    limits = np.iinfo(dtype)
    values = np.where(np.isnan(values), 0.0, values)
    return np.clip(np.rint(values), float(limits.min), float(limits.max)).astype(dtype)


def correlate(image, kernel, border):
    """Plain sums of shifted pictures in float64."""
    mode = {"reflect": "reflect", "replicate": "edge", "zero": "constant"}[border]
    rows, columns = kernel.shape
    reach = [(rows // 2, rows // 2), (columns // 2, columns // 2)] + [(0, 0)] * (image.ndim - 2)
    padded = np.pad(image.astype(np.float64), reach, mode=mode)
    result = np.zeros(image.shape)
    for y in range(rows):
        for x in range(columns):
            result += kernel[y, x] * padded[y:y + image.shape[0], x:x + image.shape[1]]
    return result


class Results(CommandTest):
    def compute(self, op, inputs, *options, device="cpu"):
        arguments = ["run", op, "--device", device]
        for index, array in enumerate(inputs):
            np.save(self.path(f"in{index}.npy"), array)
            arguments += ["--in", f"in{index}.npy"]
        self.run_well(*arguments, "--out", "out.npy", *options)
        return np.load(self.path("out.npy"))

    def reduce(self, op, array, *options):
        np.save(self.path("in.npy"), array)
        return self.run_well("run", op, "--in", "in.npy", "-q", *options).decode().strip()

    def test_add(self):
        for device in DEVICES:
            for dtype in INTEGERS + FLOATS:
                a, b = random_array(dtype, (67, 129), 1), random_array(dtype, (67, 129), 2)
                with np.errstate(over="ignore"):
                    want = a + b
                np.testing.assert_array_equal(self.compute("add", [a, b], device=device), want, err_msg=f"{dtype} {device}")

    def test_add_of_every_small_size(self):
        for size in list(range(0, 19)) + [255, 256, 257, 4095, 4097]:
            a, b = random_array("f4", size, 1), random_array("f4", size, 2)
            np.testing.assert_array_equal(self.compute("add", [a, b]), a + b, err_msg=str(size))

    def test_shapes_are_kept(self):
        for shape in [(), (1,), (0,), (0, 5), (5, 0, 3), (2, 3, 4, 5), (1, 1, 1, 1, 1, 1, 1, 1)]:
            a = random_array("i4", shape)
            result = self.compute("copy", [a])
            self.assertEqual(result.shape, shape)
            np.testing.assert_array_equal(result, a)

    def test_many_chunks_with_a_tail(self):
        a = random_array("f8", 1_000_003)
        for device in DEVICES:
            for depth in ["1", "2", "7"]:
                result = self.compute("scale", [a], "--by", "2", "--chunk", "64K", "--depth", depth, device=device)
                np.testing.assert_array_equal(result, a * 2)

    def test_chunks_follow_the_ceiling_for_pinned_memory(self):
        a = random_array("f4", 1_000_003)
        image = random_array("f4", (301, 257))
        np.save(self.path("a.npy"), a)
        np.save(self.path("image.npy"), image)
        for device in DEVICES:
            for ceiling in [1024, 4096, 65536, 1 << 20]:
                report = json.loads(self.run_well("run", "copy", "--in", "a.npy", "--out", "b.npy", "--device", device, "--json",
                                                  "--pinned", str(ceiling)))
                self.assertLessEqual(report["pinned_bytes"], ceiling, (device, ceiling))
                # Blocks of slots are multiples of 256 bytes: smaller chunks would save nothing.
                self.assertGreater(report["chunk_bytes"], 127, (device, ceiling))
                np.testing.assert_array_equal(np.load(self.path("b.npy")), a)
            # A depth that is given is kept.
            report = json.loads(self.run_well("run", "copy", "--in", "a.npy", "--out", "b.npy", "--device", device, "--json",
                                              "--pinned", "300K", "--depth", "9"))
            self.assertEqual(report["depth"], 9)
            self.assertLessEqual(report["pinned_bytes"], 300 << 10)
            np.testing.assert_array_equal(np.load(self.path("b.npy")), a)
            # Rows cannot be cut: fewer slots, down to one.
            report = json.loads(self.run_well("run", "conv2d", "--in", "image.npy", "--out", "c.npy", "--filter", "box5", "--json",
                                              "--device", device, "--pinned", "8K"))
            self.assertLessEqual(report["pinned_bytes"], 8192)
            np.testing.assert_allclose(np.load(self.path("c.npy")), correlate(image, np.full((5, 5), 1 / 25), "reflect"), rtol=1e-4,
                                       atol=1e-5)
            done = self.run_command("run", "copy", "--in", "a.npy", "--out", "d.npy", "--device", device, "--pinned", "500")
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"512", done.stderr)  # what one slot needs
            self.assert_one_line(done.stderr)

    def test_scale(self):
        for dtype in FLOATS:
            a = random_array(dtype, 1000)
            want = a.astype("f8") * 1.5 - 0.25
            np.testing.assert_allclose(self.compute("scale", [a], "--by", "1.5", "--plus", "-0.25"), want,
                                       rtol={"f2": 2e-3, "f4": 1e-6, "f8": 1e-14}[dtype], atol=1e-3 if dtype == "f2" else 1e-6)
        for dtype in ["i1", "u1", "i2", "u2", "i4"]:
            a = random_array(dtype, 1000)
            want = saturate(a.astype("f8") * 0.5 + 3, dtype)
            np.testing.assert_array_equal(self.compute("scale", [a], "--by", "0.5", "--plus=3"), want, err_msg=dtype)

    def test_scale_of_wide_integers_is_exact(self):
        a = np.array([2**62, -2**62, 2**53 + 1, -1, 0, 2**63 - 1], dtype="i8")
        np.testing.assert_array_equal(self.compute("scale", [a], "--by", "1", "--plus", "1"),
                                      np.array([2**62 + 1, -2**62 + 1, 2**53 + 2, 0, 1, 2**63 - 1], dtype="i8"))

    def test_normalize(self):
        image = random_array("u1", (33, 21, 3))
        mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        result = self.compute("normalize", [image], "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225")
        self.assertEqual(result.dtype, np.float32)
        np.testing.assert_allclose(result, (image / 255.0 - mean) / std, rtol=1e-5, atol=1e-6)

    def test_convert(self):
        a = np.concatenate([random_array("f4", 500) * 300, [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5]]).astype("f4")
        for dtype in ["u1", "i1", "i2", "i4"]:
            name = {"u1": "u8", "i1": "i8", "i2": "i16", "i4": "i32"}[dtype]
            np.testing.assert_array_equal(self.compute("convert", [a], "--to", name), saturate(a.astype("f8"), dtype), err_msg=name)
        np.testing.assert_array_equal(self.compute("convert", [a], "--to", "f16"), a.astype("f2"))
        np.testing.assert_array_equal(self.compute("convert", [a], "--to", "f64"), a.astype("f8"))

    def test_convert_to_bf16_rounds_to_nearest_even(self):
        a = random_array("f4", 1000)
        bits = a.view("u4").astype("u8")
        want = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
        result = self.compute("convert", [a], "--to", "bf16")
        np.testing.assert_array_equal(result.view("u2").reshape(-1), want)

    def test_conv2d_with_a_kernel_of_ones_own(self):
        kernel = random_array("f4", (5, 3), 9)
        np.save(self.path("kernel.npy"), kernel)
        for border in ["reflect", "replicate", "zero"]:
            for shape in [(40, 31), (17, 23, 3), (6, 5)]:
                image = random_array("f4", shape)
                result = self.compute("conv2d", [image], "--kernel", "kernel.npy", "--border", border, "--chunk", "4K")
                np.testing.assert_allclose(result, correlate(image, kernel.astype("f8"), border), rtol=1e-4, atol=1e-5,
                                           err_msg=f"{border} {shape}")

    def test_conv2d_in_f64_takes_any_weight(self):
        image = random_array("f8", (6, 5))
        np.save(self.path("kernel.npy"), np.full((1, 1), 1e300))
        np.testing.assert_array_equal(self.compute("conv2d", [image], "--kernel", "kernel.npy"), image * 1e300)

    def test_conv2d_filters_on_bytes(self):
        image = random_array("u1", (50, 41, 3))
        box = self.compute("conv2d", [image], "--filter", "box3")
        want = correlate(image, np.full((3, 3), 1 / 9), "reflect")
        self.assertLessEqual(np.abs(box.astype("f8") - want).max(), 0.51)
        sobel = self.compute("conv2d", [image.astype("i2")], "--filter", "sobelx")
        np.testing.assert_array_equal(
            sobel, correlate(image, np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]), "reflect").astype("i2"))

    def test_matmul(self):
        for device in DEVICES:
            for m, k, n in [(1, 1, 1), (7, 5, 3), (130, 257, 65), (4, 0, 3), (0, 4, 3)]:
                for dtype in ["f4", "f8"]:
                    a, b = random_array(dtype, (m, k), 1), random_array(dtype, (k, n), 2)
                    result = self.compute("matmul", [a, b], device=device)
                    self.assertEqual(result.shape, (m, n))
                    np.testing.assert_allclose(result, a.astype("f8") @ b.astype("f8"), rtol=1e-3 if dtype == "f4" else 1e-10,
                                               atol=1e-3 if dtype == "f4" else 1e-10, err_msg=f"{m} {k} {n} {dtype} {device}")

    def test_sum_of_integers_is_exact(self):
        for dtype in INTEGERS:
            a = random_array(dtype, 5000) if dtype not in ("i8", "u8") else random_array("i4", 5000).astype(dtype) % 1000
            self.assertEqual(int(self.reduce("sum", a)), sum(int(value) for value in a), dtype)

    def test_sum_of_floats_does_not_depend_on_chunks(self):
        a = random_array("f4", 1_000_003)
        sums = {self.reduce("sum", a, *options) for options in ([], ["--chunk", "64K"], ["--device", "cpu:discrete", "--chunk", "1M"])}
        self.assertEqual(len(sums), 1, sums)
        self.assertAlmostEqual(float(sums.pop()), float(np.sum(a.astype("f8"))), places=6)

    def test_checksum(self):
        table = []
        for byte in range(256):
            crc = byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
            table.append(crc)
        a = random_array("u1", 10_007)
        crc = 0xFFFFFFFF
        for byte in a.tobytes():
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        self.assertEqual(self.reduce("checksum", a), f"{crc ^ 0xFFFFFFFF:08x}")
        self.assertEqual(self.reduce("checksum", a, "--chunk", "4K"), f"{crc ^ 0xFFFFFFFF:08x}")
        self.assertEqual(self.reduce("checksum", np.frombuffer(b"123456789", dtype="u1")), "e3069283")

    def test_fortran_order_and_big_endian(self):
        a = random_array("f4", (13, 7, 5))
        for stored in [np.asfortranarray(a), a.astype(">f4"), np.asfortranarray(a.astype(">f4"))]:
            np.testing.assert_array_equal(self.compute("copy", [stored]), a)

    def test_raw_files(self):
        a = random_array("i2", (6, 5))
        a.tofile(self.path("a.raw"))
        self.run_well("run", "copy", "--in", "a.raw", "--dtype", "i16", "--shape", "6,5", "--out", "b.npy")
        np.testing.assert_array_equal(np.load(self.path("b.npy")), a)
        self.run_well("run", "copy", "--in", "a.raw", "--dtype", "i16", "--shape", "?,5", "--out", "c.npy")
        np.testing.assert_array_equal(np.load(self.path("c.npy")), a)
        self.run_well("run", "copy", "--in", "a.raw", "--dtype", "i16", "--out", "d.raw")
        np.testing.assert_array_equal(np.fromfile(self.path("d.raw"), "i2"), a.ravel())

    def test_raw_files_of_different_shapes(self):
        a, b = random_array("f8", (6, 5), 1), random_array("f8", (5, 9), 2)
        a.tofile(self.path("a.raw"))
        b.tofile(self.path("b.raw"))
        self.run_well("run", "matmul", "--in", "a.raw", "--in", "b.raw", "--dtype", "f64", "--shape", "6,5", "--shape", "5,9",
                      "--out", "c.npy")
        np.testing.assert_allclose(np.load(self.path("c.npy")), a @ b, rtol=1e-12)

    def test_raw_files_may_hold_any_bytes(self):
        np.save(self.path("a.npy"), random_array("f4", (6, 5)))
        shutil.copy(self.path("a.npy"), self.path("a.raw"))
        with open(self.path("a.raw"), "rb") as file:
            whole = np.frombuffer(file.read(), "u1")
        self.run_well("run", "copy", "--in", "a.raw", "--dtype", "u8", "--out", "b.npy")
        np.testing.assert_array_equal(np.load(self.path("b.npy")), whole)

    def test_raw_output_under_the_name_of_another_format_is_said(self):
        np.save(self.path("a.npy"), random_array("f4", 7))
        for name, noted in [("c.tiff", True), ("c", True), ("c.raw", False), ("c.BIN", False), ("c.npy", False)]:
            done = self.run_command("run", "copy", "--in", "a.npy", "--out", name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(b"its ending names no format" in done.stderr, noted, name)
        self.assertEqual(os.path.getsize(self.path("c.tiff")), 28)

    def test_raw_beside_npy(self):
        a, b = random_array("f4", (6, 5), 1), random_array("f4", (5, 9), 2)
        np.save(self.path("a.npy"), a)
        b.tofile(self.path("b.raw"))
        self.run_well("run", "matmul", "--in", "a.npy", "--in", "b.raw", "--dtype", "f32", "--shape", "5,9", "--out", "c.npy")
        np.testing.assert_allclose(np.load(self.path("c.npy")), a @ b, rtol=1e-5, atol=1e-6)
        self.run_well("run", "copy", "--in", "a.npy", "--dtype", "f32", "--shape", "?,5", "--out", "c.npy")
        np.testing.assert_array_equal(np.load(self.path("c.npy")), a)

    def test_images(self):
        image = random_array("u1", (19, 23, 3))
        header = b"P6\n23 19\n255\n"
        with open(self.path("a.ppm"), "wb") as file:
            file.write(header + image.tobytes())
        self.run_well("run", "copy", "--in", "a.ppm", "--out", "b.png")
        self.run_well("run", "copy", "--in", "b.png", "--out", "c.npy")
        np.testing.assert_array_equal(np.load(self.path("c.npy")), image)
        self.run_well("run", "copy", "--in", "b.png", "--out", "d.ppm")
        with open(self.path("d.ppm"), "rb") as file:
            self.assertTrue(file.read().endswith(image.tobytes()))

    def test_standard_input_and_output(self):
        a = random_array("f4", 300_001)
        buffer = io.BytesIO()
        np.save(buffer, a)
        output = self.run_well("run", "scale", "--by", "3", "--in", "-", "--out", "-", "-q", input=buffer.getvalue())
        np.testing.assert_array_equal(np.load(io.BytesIO(output)), a * np.float32(3))

    def test_raw_stream_of_unknown_length(self):
        data = zlib.compress(bytes(range(256)) * 5000)
        producer = subprocess.Popen(["sh", "-c", "sleep 0.1; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        command = subprocess.Popen([HEADRACE, "run", "checksum", "--in", "-", "--dtype", "u8", "-q"], stdin=producer.stdout,
                                   stdout=subprocess.PIPE, cwd=self.folder, env=self.environment)
        producer.stdout.close()
        producer.stdin.write(data)
        producer.stdin.close()
        result = command.communicate()[0].decode().strip()
        producer.wait()
        self.assertEqual(command.returncode, 0)
        self.assertEqual(result, self.reduce("checksum", np.frombuffer(data, dtype="u1")))


if __name__ == "__main__":
    unittest.main()

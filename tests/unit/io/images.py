#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PNG files made with nothing but zlib, and the pixels that they mean.

    images.py make FOLDER    NAME.png and NAME.raw for each kind of PNG, list.txt as oracle.py writes it, and files that
                             must be refused: bad_*.png
    images.py check FOLDER   reads list.txt and takes each .png apart: non-interlaced, any filter, 8 or 16 bits
"""
import os
import random
import struct
import sys
import zlib

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_row(samples, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    if depth == 8:
        return bytes(samples)
    out, per = bytearray(), 8 // depth
    for i in range(0, len(samples), per):
        group = samples[i:i + per] + [0] * (per - len(samples[i:i + per]))
        byte = 0
        for s in group:
            byte = byte << depth | s
        out.append(byte)
    return bytes(out)


def png(rows, columns, kind, depth, samples, interlaced=False, extra=b"", cut=0, claim=None):
    """samples[y][x] is a list of channel values."""
    def lines(ys, xs):
        return b"".join(b"\0" + pack_row([v for x in xs for v in samples[y][x]], depth) for y in ys if xs)
    if interlaced:
        raw = b"".join(lines(range(y, rows, dy), list(range(x, columns, dx))) for y, x, dy, dx in ADAM7)
    else:
        raw = lines(range(rows), list(range(columns)))
    height, width = claim or (rows, columns)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return data[:len(data) - cut]


def make(folder):
    source, listed = random.Random(1), []

    def save(name, data, pixels=None, dtype="u8", shape=()):
        with open(os.path.join(folder, name + ".png"), "wb") as file:
            file.write(data)
        if pixels is not None:
            code = "=%dH" % len(pixels) if dtype == "u16" else "=%dB" % len(pixels)
            with open(os.path.join(folder, name + ".raw"), "wb") as file:
                file.write(struct.pack(code, *pixels))
            listed.append(" ".join([name + ".png", name + ".raw", dtype] + [str(n) for n in shape]))

    def image(rows, columns, channels, depth, top=None):
        return [[[source.randrange(top or 1 << depth) for _ in range(channels)] for _ in range(columns)]
                for _ in range(rows)]

    for rows, columns in ((1, 1), (5, 7), (13, 9), (3, 64)):
        for kind, depths in ((GRAY, (1, 2, 4, 8, 16)), (RGB, (8, 16)), (GRAY_ALPHA, (8, 16)), (RGBA, (8, 16))):
            for depth in depths:
                for interlaced in (False, True):
                    channels = CHANNELS[kind]
                    samples = image(rows, columns, channels, depth)
                    scale = 255 // ((1 << depth) - 1) if depth < 8 else 1
                    flat = [v * scale for line in samples for pixel in line for v in pixel]
                    shape = (rows, columns) if channels == 1 else (rows, columns, channels)
                    name = f"k{kind}_d{depth}_{rows}x{columns}_{int(interlaced)}"
                    save(name, png(rows, columns, kind, depth, samples, interlaced), flat,
                         "u16" if depth == 16 else "u8", shape)
        palette = [tuple(source.randrange(256) for _ in range(3)) for _ in range(16)]
        plte = chunk(b"PLTE", bytes(v for entry in palette for v in entry))
        for depth in (4, 8):
            samples = image(rows, columns, 1, depth, 16)
            flat = [v for line in samples for pixel in line for v in palette[pixel[0]]]
            save(f"p{depth}_{rows}x{columns}", png(rows, columns, PALETTE, depth, samples, extra=plte), flat, "u8",
                 (rows, columns, 3))
            alpha = [source.randrange(256) for _ in range(16)]
            flat = [v for line in samples for pixel in line for v in (*palette[pixel[0]], alpha[pixel[0]])]
            save(f"pa{depth}_{rows}x{columns}",
                 png(rows, columns, PALETTE, depth, samples, extra=plte + chunk(b"tRNS", bytes(alpha))), flat, "u8",
                 (rows, columns, 4))
    samples = image(4, 4, 1, 8)
    save("bad_cut", png(4, 4, GRAY, 8, samples, cut=20))
    save("bad_bomb", png(4, 4, GRAY, 8, samples, claim=(500000, 500000)))
    save("bad_edge", png(4, 4, GRAY, 8, samples, claim=(4, 2000000000)))
    save("bad_zero", png(4, 4, GRAY, 8, samples, claim=(0, 4)))
    save("bad_few", png(4, 4, GRAY, 8, samples, claim=(5, 4)))
    whole = bytearray(png(4, 4, GRAY, 8, samples))
    whole[45] ^= 1
    save("bad_crc", bytes(whole))
    with open(os.path.join(folder, "list.txt"), "w") as file:
        file.write("\n".join(listed) + "\n")
    return 0


def unfilter(raw, rows, row_bytes, step):
    previous, out, at = bytearray(row_bytes), [], 0
    for _ in range(rows):
        kind, line = raw[at], bytearray(raw[at + 1:at + 1 + row_bytes])
        at += 1 + row_bytes
        for i in range(row_bytes):
            a = line[i - step] if i >= step else 0
            b, c = previous[i], previous[i - step] if i >= step else 0
            if kind == 4:
                p = a + b - c
                predicted = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                predicted = (0, a, b, (a + b) // 2)[kind]
            line[i] = (line[i] + predicted) & 255
        out.append(bytes(line))
        previous = line
    return b"".join(out)


def check(folder):
    wrong = 0
    for entry in open(os.path.join(folder, "list.txt")):
        name, raw_name, dtype, *extents = entry.split()
        data, at, parts = open(os.path.join(folder, name), "rb").read(), 8, {}
        while at < len(data):
            length, = struct.unpack(">I", data[at:at + 4])
            kind = data[at + 4:at + 8]
            parts[kind] = parts.get(kind, b"") + data[at + 8:at + 8 + length]
            at += 12 + length
        width, height, depth, color, _, _, _ = struct.unpack(">IIBBBBB", parts[b"IHDR"])
        step = CHANNELS[color] * depth // 8
        pixels = unfilter(zlib.decompress(parts[b"IDAT"]), height, width * step, step)
        expected = open(os.path.join(folder, raw_name), "rb").read()
        if depth == 16:
            expected = struct.pack(">%dH" % (len(expected) // 2), *struct.unpack("=%dH" % (len(expected) // 2), expected))
        shape = [str(height), str(width)] + ([str(CHANNELS[color])] if len(extents) == 3 else [])
        if extents != shape or depth != (16 if dtype == "u16" else 8) or pixels != expected:
            print(f"{name}: not the picture that was written")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit({"make": make, "check": check}[sys.argv[1]](sys.argv[2]))

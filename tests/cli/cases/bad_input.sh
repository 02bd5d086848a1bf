# SPDX-License-Identifier: Apache-2.0
# Input that cannot be used: exit 2, one line, nothing left behind.
array() {
    "${HEADRACE_PYTHON:-python3}" -B - "$@"
}
make-array good.npy f4 4,7
make-array other.npy f4 4,8
make-array doubles.npy f8 4,7
make-array line.npy f4 28
make-array big.npy f4 2000000
array <<'END'
import struct
import numpy as np
whole = open("good.npy", "rb").read()
open("empty.npy", "wb").close()
open("truncated.npy", "wb").write(whole[:-16])
open("long.npy", "wb").write(whole + b"123")
open("header.npy", "wb").write(whole[:40])
open("magic.npy", "wb").write(b"\x93NUMPX" + whole[6:])

def header(name, text, version=(1, 0), length=None, data=b""):
    text = text.encode()
    size = len(text) if length is None else length
    pack = struct.pack("<H" if version[0] == 1 else "<I", size)
    open(name, "wb").write(b"\x93NUMPY" + bytes(version) + pack + text + data)

header("huge-header.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", (2, 0), 0xFFFFFFFF)
header("version9.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", (9, 0))
header("negative.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 7), }\n")
header("overflow.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }\n")
header("beyond.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n")
header("promise.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n")
header("dtype.npy", "{'descr': '<c8', 'fortran_order': False, 'shape': (4,), }\n", data=b"\0" * 32)
header("object.npy", "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }\n", data=b"\0" * 32)
header("record.npy", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,), }\n", data=b"\0" * 16)
header("nokey.npy", "{'descr': '<f4', 'shape': (4,), }\n", data=b"\0" * 16)
header("rank.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }\n", data=b"\0" * 4)
np.save("even.npy", np.ones((2, 2), np.float32))
np.save("wide.npy", np.ones((33, 33), np.float32))
np.save("nankernel.npy", np.full((3, 3), np.nan, np.float32))
np.save("hugekernel.npy", np.full((1, 1), 1e39))
np.save("intkernel.npy", np.ones((3, 3), np.int32))
END
head -c 100 /dev/zero >raw.bin
printf 'P5\n4 4\n255\nabc' >short.pgm
printf '\211PNG\r\n\032\nrubbish' >bad.png
mkdir folder
for file in missing.npy folder empty.npy truncated.npy long.npy header.npy magic.npy huge-header.npy version9.npy negative.npy \
    overflow.npy beyond.npy promise.npy dtype.npy object.npy record.npy nokey.npy rank.npy short.pgm bad.png raw.bin; do
    try headrace run copy --in $file --out c.npy
done
try headrace run copy --in raw.bin --dtype f32 --shape 5,7 --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape 4,-7 --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape 4,x --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape 4294967296,4294967296,4294967296 --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape 1,1,1,1,1,1,1,1,1 --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape '?,?' --out c.npy
try headrace run copy --in raw.bin --dtype f32 --shape '?,7' --out c.npy
try headrace run copy --in good.npy --dtype f64 --out c.npy
try headrace run copy --in good.npy --dtype f32 --shape 7,4 --out c.npy
try headrace run add --in good.npy --in other.npy --out c.npy
try headrace run add --in good.npy --in doubles.npy --out c.npy
try headrace run matmul --in good.npy --in other.npy --out c.npy
try headrace run matmul --in line.npy --in good.npy --out c.npy
try headrace run normalize --in good.npy --out c.npy
try headrace run conv2d --in line.npy --filter box3 --out c.npy
try headrace run conv2d --in good.npy --kernel missing.npy --out c.npy
try headrace run conv2d --in good.npy --kernel even.npy --out c.npy
try headrace run conv2d --in good.npy --kernel wide.npy --out c.npy
try headrace run conv2d --in good.npy --kernel nankernel.npy --out c.npy
try headrace run conv2d --in good.npy --kernel intkernel.npy --out c.npy
try headrace run conv2d --in good.npy --kernel hugekernel.npy --out c.npy
try headrace run copy --in good.npy --out good.npy
ln good.npy link.npy
try headrace run copy --in good.npy --out link.npy
try headrace run copy --in good.npy --out good.npy/c.npy
try headrace run copy --in good.npy --out c.npy --trace good.npy
try headrace run copy --in big.npy --out c.npy --device cpu:discrete --chunk 4M --pinned 1M
echo "left behind:"
ls

# SPDX-License-Identifier: Apache-2.0
# Arguments that cannot be used: exit 2 and one line that says what is needed.
make-array a.npy f4 4
make-array picture.npy u1 4,4
make-array kernel.npy f4 3,3
try headrace frobnicate
try headrace run
try headrace ''
try headrace run ''
try headrace run nosuch --in a.npy --out c.npy
try headrace run add --in a.npy --out c.npy
try headrace run copy --in a.npy --in a.npy --out c.npy
try headrace run copy extra --in a.npy --out c.npy
try headrace run copy --in a.npy
try headrace run copy --in a.npy --out
try headrace run copy --in a.npy --out c.npy --out d.npy
try headrace run copy --in a.npy --out c.npy -q -q
try headrace run copy --in a.npy --out c.npy --chnk 4K
try headrace run copy --in a.npy --out c.npy --zzz
try headrace run copy --in a.npy --out c.npy -x
try headrace run copy --in a.npy --out c.npy --json=yes
try headrace run copy --in a.npy --out c.npy --by 3
try headrace run scale --in a.npy --out c.npy --by
try headrace run scale --in a.npy --out c.npy --by three
try headrace run scale --in a.npy --out c.npy --by 1e999
try headrace run scale --in a.npy --out c.npy --by nan
try headrace run convert --in a.npy --out c.npy
try headrace run convert --in a.npy --out c.npy --to f33
try headrace run conv2d --in a.npy --out c.npy
try headrace run conv2d --in a.npy --out c.npy --filter blur99
try headrace run conv2d --in a.npy --out c.npy --kernel ''
try headrace run conv2d --in a.npy --out c.npy --filter box3 --border wrap
try headrace run conv2d --in a.npy --out c.npy --filter box3 --kernel a.npy
try headrace run copy --in a.npy --out c.npy --chunk 0
try headrace run copy --in a.npy --out c.npy --chunk 3X
try headrace run copy --in a.npy --out c.npy --chunk -1
try headrace run copy --in a.npy --out c.npy --chunk 99999999999999999999
try headrace run copy --in a.npy --out c.npy --pinned 16E
try headrace run copy --in a.npy --out c.npy --depth 0
try headrace run copy --in a.npy --out c.npy --depth 1025
try headrace run copy --in missing.npy --out c.npy --depth 2.5
try headrace run copy --in a.npy --out c.npy --device tpu
try headrace run copy --in a.npy --out c.npy --device cpu:9
try headrace run copy --in a.npy --out c.npy --device cpu:discrete,h2d=fast
try headrace run copy --in a.npy --out c.npy --shape 4
try headrace run copy --in a.npy --out c.npy --dtype f99
try headrace run sum --in a.npy --out c.npy
try headrace run add --in - --in - --out c.npy
try headrace run copy --in - --out c.npy --verify
try headrace run copy --in a.npy --out - --json
try headrace run copy --in a.npy --out c.jpg
try headrace run copy --in picture.npy --out c.jpg --verify
try headrace run copy --in a.npy --out c.npy --trace -
try headrace run copy --in a.npy --out c.npy --trace c.npy
try headrace run copy --in a.npy --out c.npy --trace ./c.npy
try headrace run copy --in a.npy --out c.npy --trace /proc/self/fd/1
try headrace run copy --in a.npy --out c.npy --trace ''
try headrace run copy --in '' --out c.npy
try headrace run copy --in a.npy --out ''
try headrace run copy --in a.npy --out /dev/stdout --json
try headrace run copy --in a.npy --out /proc/self/fd/1 --verify
try headrace run copy --in a.npy --out /dev/null --verify
try headrace run add --in - --in /dev/stdin --out c.npy
headrace run copy --in kernel.npy --out - -q | try headrace run conv2d --in - --kernel - --out c.npy
mkfifo pipe
try headrace run add --in pipe --in ./pipe --dtype u8 --out c.npy
try headrace run copy --in pipe --dtype u8 --out c.npy --verify
try headrace run copy --in a.npy --out pipe --verify
try headrace bench
try headrace bench speed
try headrace info now
try headrace help nothing
echo "left behind:"
ls

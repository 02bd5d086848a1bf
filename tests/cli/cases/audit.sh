# SPDX-License-Identifier: Apache-2.0
# headrace audit: the three outcomes for CI, arguments, and files that are damaged or foreign.
t=$HEADRACE_SOURCE/tests/data/traces
cp "$t/h200_in_pageable_one_stream.json.gz" slow.json.gz
cp "$t/h200_in_pinned_ring.json.gz" good.json.gz
try headrace audit
try headrace audit slow.json.gz good.json.gz
try headrace audit --
try headrace audit missing.json
try headrace audit slow.json.gz --min-cost much
try headrace audit slow.json.gz --link missing.json
try headrace audit slow.json.gz --html -
try headrace audit slow.json.gz --html folder/missing/report.html --json
echo '# found, not found, cannot tell, and a mistake'
outcome() {
    headrace audit "$1" --json --fail-on "$2" >/dev/null
    echo "$2 on $1: exit $?"
}
outcome slow.json.gz pageable-copy
outcome good.json.gz pageable-copy
outcome good.json.gz null-stream
outcome good.json.gz pagable-copy
outcome slow.json.gz 'overlap<80'
outcome good.json.gz 'overlap<80'
echo '# damage'
head -c 5000 slow.json.gz >cut.json.gz
zcat slow.json.gz | head -c 50000 >cut.json
printf 'hello, world\n' >text.json
printf '{"a": [1, 2]}' >other.json
printf '{"traceEvents": []}' >empty.json
: >nothing.json
printf 'SQLite format 3\0 and then rubbish that is no database at all' >rubbish.sqlite
for file in cut.json.gz cut.json text.json other.json empty.json nothing.json rubbish.sqlite .; do
    try headrace audit "$file"
done

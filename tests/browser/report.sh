#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# report.sh HEADRACE BROWSER TRACES: opens an HTML report in a headless browser and looks at what its script made of it.
set -eu
headrace=$1 browser=$2 traces=$3
if [ -z "$browser" ] || [ "$browser" = HEADRACE_BROWSER-NOTFOUND ]; then
    echo "skipped: no Chromium is installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-}

# What the page holds once its script has run. Errors of the script go to the console, which is kept.
open_report() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --enable-logging=stderr \
        --virtual-time-budget=4000 --dump-dom "file://$1" >"$work/dom.html" 2>"$work/console" || {
        echo "the browser failed:"
        tail -n 5 "$work/console"
        exit 1
    }
    if grep -q 'CONSOLE.*\(Uncaught\|Error\)' "$work/console"; then
        grep CONSOLE "$work/console"
        exit 1
    fi
}

expect() {
    grep -q -- "$1" "$work/dom.html" || {
        echo "the page does not say: $1"
        exit 1
    }
}

"$headrace" audit "$traces/h200_in_pageable_one_stream.json.gz" --html "$work/found.html" >/dev/null
open_report "$work/found.html"
expect '<h1>This run takes 424 ms. It could take 5[5-8]'
expect 'class="rule">pageable-copy'
expect 'pin_memory'
expect 'predicted, with everything fixed'
[ "$(grep -o '<canvas' "$work/dom.html" | wc -l)" = 2 ] || { echo "needs two timelines: today's and the predicted one"; exit 1; }

"$headrace" audit "$traces/h200_in_pinned_ring.json.gz" --html "$work/clean.html" >/dev/null
open_report "$work/clean.html"
expect 'nothing found would make it shorter'
expect '>No findings<'
[ "$(grep -o '<canvas' "$work/dom.html" | wc -l)" = 1 ] || { echo "a clean run has one timeline"; exit 1; }

# The canvas is painted, in the light and in the dark: a page of one colour would mean an empty timeline. The browser's time is
# virtual and may run out before it has drawn a frame, so the page looks again and again, and is opened up to three times.
sed 's#</body>#<script>addEventListener("load",()=>{document.querySelector(".finding button").click();let left=30;const look=()=>{const c=document.querySelector("canvas"),d=c.getContext("2d").getImageData(0,0,c.width,c.height).data,s=new Set();for(let i=0;i<d.length;i+=4)s.add(d[i]<<16|d[i+1]<<8|d[i+2]);document.title="colours "+s.size;if(s.size<=4\&\&left-->0)setTimeout(look,100);};setTimeout(look,800);});</script></body>#' \
    "$work/found.html" >"$work/painted.html"
for _ in 1 2 3; do
    open_report "$work/painted.html"
    colours=$(sed -n 's/.*<title>colours \([0-9]*\).*/\1/p' "$work/dom.html")
    [ "${colours:-0}" -le 4 ] || break
done
[ "${colours:-0}" -gt 4 ] || { echo "the timeline has ${colours:-no} colours"; exit 1; }
expect 'aria-pressed="true"'
echo "the report draws: $colours colours"

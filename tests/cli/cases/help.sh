# SPDX-License-Identifier: Apache-2.0
# Help shows an example first, on every verb, and ends with 0; no arguments at all is a mistake.
for verb in run audit bench info; do
    headrace $verb --help >$verb.txt || echo "headrace $verb --help fails"
    head -n 1 $verb.txt
    sed -n 2p $verb.txt | cut -c 1-$((11 + ${#verb}))
    cmp <(headrace help $verb) $verb.txt
    cmp <(headrace $verb -h) $verb.txt
    grep -c 'Exit status' $verb.txt
    # Nothing is wider than 100 columns.
    awk 'length($0) > 100' $verb.txt
done
headrace >overview.txt 2>&1
echo "exit $?"
cmp overview.txt <(headrace --help)
headrace --version

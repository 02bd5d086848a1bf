# SPDX-License-Identifier: Apache-2.0
# The manual pages and the completion say what --help says: each option of each verb is in all three.
headrace --completion >headrace.bash
bash -n headrace.bash || echo "the completion is no valid bash"
# shellcheck source=/dev/null
. ./headrace.bash

# complete WORD …: what bash would offer for the last word.
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _headrace
    printf '%s\n' "${COMPREPLY[@]}"
}

for verb in run audit bench info; do
    headrace --man $verb | sed 's/\\-/-/g; s/\\f.//g' >$verb.1
    complete_words headrace $verb -- >$verb.words
    headrace $verb --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE '[-][-][a-z-]+' | sort -u >$verb.options
    while read -r option; do
        [ "$option" = --help ] || grep -q -e "$option" $verb.1 || echo "$option is not in the manual of $verb"
        grep -qx -e "$option" $verb.words || echo "$option is not completed for $verb"
    done <$verb.options
    echo "$verb: $(wc -l <$verb.options) options"
done
complete_words headrace r
complete_words headrace run conv2
complete_words headrace run conv2d --device cpu:
complete_words headrace bench l
touch picture.png
complete_words headrace run copy --in pic
complete_words headrace audit pic
complete_words headrace run convert --to x --filt
complete_words headrace run convert --to f1
complete_words headrace run conv2d --border ''
complete_words headrace run conv2d --filter sobel
complete_words headrace run conv2d --kernel pic
echo "by: $(complete_words headrace run scale --by '')"

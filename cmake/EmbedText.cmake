# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUTS=a.css;b.js -DOUTPUT=page.c -P EmbedText.cmake: text files as byte arrays with their lengths, named
# hr_page_<file name with _ for .>.
set(source "/* Made from the files of this folder; not to be edited. */\n#include <stddef.h>\n#include \"trace/render/page.h\"\n")
foreach(input ${INPUTS})
    get_filename_component(name ${input} NAME)
    string(REGEX REPLACE "[^a-zA-Z0-9]" "_" name ${name})
    file(READ ${input} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND source "const unsigned char hr_page_${name}[] = {${bytes}};\nconst size_t hr_page_${name}_bytes = sizeof hr_page_${name};\n")
endforeach()
file(WRITE ${OUTPUT} "${source}")

# SPDX-License-Identifier: Apache-2.0
# Language level, warnings and sanitizers, the same for every target.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(headrace_flags INTERFACE)
target_compile_definitions(headrace_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(headrace_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wformat=2;-Wundef;-Wpointer-arith;-Wvla;-Wstrict-prototypes;-Wmissing-prototypes;-Wno-format-nonliteral>
    $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${HEADRACE_WERROR}>>:-Werror>)
# Float results must not depend on which multiply-adds the compiler fuses.
target_compile_options(headrace_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>)
if(HEADRACE_SANITIZE)
    target_compile_options(headrace_flags INTERFACE
        $<$<COMPILE_LANGUAGE:C>:-fsanitize=${HEADRACE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
    target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()

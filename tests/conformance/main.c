/* SPDX-License-Identifier: Apache-2.0 */
/* conformance SPEC [--peer SPEC] [--modules FOLDER] [--only PART] [--thorough] */
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *spec = NULL, *peer = NULL, *modules = NULL, *only = NULL;
    bool thorough = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--thorough") == 0) {
            thorough = true;
        } else if (strcmp(argv[i], "--modules") == 0 && i + 1 < argc) {
            modules = argv[++i];
        } else if (strcmp(argv[i], "--peer") == 0 && i + 1 < argc) {
            peer = argv[++i];
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            spec = argv[i];
        }
    }
    if (spec == NULL) {
        fprintf(stderr,
                "usage: conformance SPEC [--peer SPEC] [--modules FOLDER] [--only PART] [--thorough]\n");
        return 2;
    }
    return conformance_run(spec, peer, modules, only, thorough);
}

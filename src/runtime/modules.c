/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/modules.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "headrace-"
#define SUFFIX ".so"
/* The module that people look for; its absence is worth a word. */
#define EXPECTED "cuda"

static void add_absent(hr_runtime *runtime, const char *name, const char *why)
{
    char text[HR_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%.60s: %.440s", name, why);
    hr_registry_add_absent(runtime, text);
}

/* Opens one module and registers its backend. */
static void load(hr_runtime *runtime, const char *path, const char *name)
{
    char why[HR_ERROR_TEXT_BYTES];
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        snprintf(why, sizeof why, "its module does not load: %.400s", dlerror());
        add_absent(runtime, name, why);
        return;
    }
    /* POSIX lets a pointer from dlsym() be a function's; ISO C has no cast for it. */
    hr_backend_module_fn entry = NULL;
    void *found = dlsym(module, HR_BACKEND_MODULE_SYMBOL);
    memcpy(&entry, &found, sizeof entry);
    const hr_backend *backend = entry != NULL ? entry() : NULL;
    if (backend == NULL) {
        snprintf(why, sizeof why, "%.300s is no module of Headrace: it has no %s", path,
                 HR_BACKEND_MODULE_SYMBOL);
    } else if (backend->abi != HR_BACKEND_ABI) {
        snprintf(why, sizeof why, "%.300s is of another version of Headrace: its interface is %u, needs %u",
                 path, backend->abi, HR_BACKEND_ABI);
    } else {
        hr_status status = hr_registry_add(runtime, backend, module);
        if (status == HR_OK || status == HR_E_BUSY) {
            if (status == HR_E_BUSY) {
                dlclose(module); /* an earlier folder had one */
            }
            return;
        }
        snprintf(why, sizeof why, "%s", hr_status_text(status));
    }
    dlclose(module);
    add_absent(runtime, name, why);
}

static int is_module(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 && length > strlen(PREFIX SUFFIX) &&
           strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) == 0;
}

/* Loads what the folder has. True if the expected module was there, whether it loaded or not. */
static bool load_folder(hr_runtime *runtime, const char *folder)
{
    struct dirent **files;
    int count = scandir(folder, &files, is_module, alphasort);
    bool expected = false;
    for (int i = 0; i < count; i++) {
        char path[4096], name[64];
        const char *file = files[i]->d_name;
        if (snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path) {
            snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(PREFIX SUFFIX)),
                     file + strlen(PREFIX));
            expected = expected || strcmp(name, EXPECTED) == 0;
            load(runtime, path, name);
        }
        free(files[i]);
    }
    if (count >= 0) {
        free(files);
    }
    return expected;
}

/* The folder `headrace` beside the file that holds this code. False if the system cannot tell. */
static bool folder_beside(char *folder, size_t room)
{
    Dl_info info;
    if (dladdr(PREFIX, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash != NULL ? (int)(slash - info.dli_fname) : 1;
    return snprintf(folder, room, "%.*s/headrace", length, slash != NULL ? info.dli_fname : ".") < (int)room;
}

void hr_modules_load(hr_runtime *runtime, const char *module_path)
{
    char why[HR_ERROR_TEXT_BYTES];
    /* A program with more rights than its caller must not load code that the caller names. */
    const char *named = module_path != NULL ? module_path : secure_getenv("HEADRACE_MODULES");
    if (named != NULL) {
        if (!load_folder(runtime, named)) {
            snprintf(why, sizeof why, "there is no " PREFIX EXPECTED SUFFIX " in %.300s", named);
            add_absent(runtime, EXPECTED, why);
        }
        return;
    }
    char beside[4096] = "";
    bool found = folder_beside(beside, sizeof beside) && load_folder(runtime, beside);
    if (strcmp(beside, HR_MODULE_FOLDER) != 0 && load_folder(runtime, HR_MODULE_FOLDER)) {
        found = true;
    }
    if (!found) {
        snprintf(why, sizeof why, "there is no module " PREFIX EXPECTED SUFFIX " in %.180s or in %.180s",
                 beside, HR_MODULE_FOLDER);
        add_absent(runtime, EXPECTED, why);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: which backends there are, which devices they have, and why others are absent. */
#include "core/internal.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKENDS_MAX 8
#define SPEC_BYTES   64

typedef struct registered {
    const hr_backend *backend;
    void *module;
    bool probed;
    uint32_t count; /* of devices, once probed */
} registered;

struct hr_runtime {
    pthread_mutex_t lock;
    registered backends[BACKENDS_MAX];
    uint32_t backend_count;
    char (*specs)[SPEC_BYTES]; /* of all devices, once all backends are probed */
    uint32_t spec_count;
    char **absent;
    uint32_t absent_count;
    _Atomic uint32_t open_devices;
};

hr_status hr_registry_open(hr_runtime **runtime, hr_error *error)
{
    hr_runtime *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "runtime: no memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    *runtime = made;
    return HR_OK;
}

hr_status hr_registry_add(hr_runtime *runtime, const hr_backend *backend, void *module)
{
    if (backend->abi != HR_BACKEND_ABI) {
        return HR_E_UNSUPPORTED;
    }
    if (runtime->backend_count == BACKENDS_MAX) {
        return HR_E_RANGE;
    }
    for (uint32_t i = 0; i < runtime->backend_count; i++) {
        if (strcmp(runtime->backends[i].backend->name, backend->name) == 0) {
            return HR_E_BUSY;
        }
    }
    runtime->backends[runtime->backend_count++] = (registered){.backend = backend, .module = module};
    return HR_OK;
}

void hr_registry_add_absent(hr_runtime *runtime, const char *text)
{
    char **grown = realloc(runtime->absent, (runtime->absent_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return; /* only an explanation is lost */
    }
    runtime->absent = grown;
    char *copy = strdup(text);
    if (copy != NULL) {
        grown[runtime->absent_count++] = copy;
    }
}

hr_status hr_runtime_close(hr_runtime **runtime, hr_error *error)
{
    hr_runtime *closed = runtime != NULL ? *runtime : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    uint32_t open = atomic_load(&closed->open_devices);
    if (open > 0) {
        return hr_fail(error, HR_E_BUSY, "runtime: %" PRIu32 " device%s still open", open,
                       open == 1 ? " is" : "s are");
    }
    for (uint32_t i = 0; i < closed->absent_count; i++) {
        free(closed->absent[i]);
    }
    free(closed->absent);
    free(closed->specs);
    for (uint32_t i = 0; i < closed->backend_count; i++) {
        if (closed->backends[i].module != NULL) {
            dlclose(closed->backends[i].module);
        }
    }
    pthread_mutex_destroy(&closed->lock);
    free(closed);
    *runtime = NULL;
    return HR_OK;
}

/* Under the lock. A backend that cannot answer has no devices, and its reason is kept. */
static void probe(hr_runtime *runtime, registered *entry)
{
    if (entry->probed) {
        return;
    }
    entry->probed = true;
    hr_error error = HR_ERROR_INIT;
    uint32_t count = 0;
    if (entry->backend->probe(&count, &error) == HR_OK && count > 0) {
        entry->count = count;
        return;
    }
    char text[HR_ERROR_TEXT_BYTES];
    const char *name = entry->backend->name;
    size_t length = strlen(name);
    /* "cuda: no driver", not "cuda: cuda: no driver". */
    bool named = strncmp(error.text, name, length) == 0 && error.text[length] == ':';
    snprintf(text, sizeof text, "%s%s%.400s", named ? "" : name, named ? "" : ": ",
             error.text[0] != '\0' ? error.text : "no device was found");
    hr_registry_add_absent(runtime, text);
}

/* Under the lock. GPUs come first, in the order in which "auto" prefers them; the CPU devices last. */
static void list_specs(hr_runtime *runtime)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < runtime->backend_count; i++) {
        probe(runtime, &runtime->backends[i]);
        total += runtime->backends[i].count;
    }
    if (runtime->specs != NULL || total == 0) {
        return;
    }
    runtime->specs = calloc(total, sizeof *runtime->specs);
    if (runtime->specs == NULL) {
        return;
    }
    for (int last = 0; last <= 1; last++) {
        for (uint32_t i = 0; i < runtime->backend_count; i++) {
            const registered *entry = &runtime->backends[i];
            if ((strcmp(entry->backend->name, "cpu") == 0) != (last == 1)) {
                continue;
            }
            for (uint32_t k = 0; k < entry->count; k++) {
                if (entry->backend->spec_at(k, runtime->specs[runtime->spec_count], SPEC_BYTES) == HR_OK) {
                    runtime->spec_count++;
                }
            }
        }
    }
}

uint32_t hr_runtime_device_count(hr_runtime *runtime)
{
    pthread_mutex_lock(&runtime->lock);
    list_specs(runtime);
    uint32_t count = runtime->spec_count;
    pthread_mutex_unlock(&runtime->lock);
    return count;
}

const char *hr_runtime_device_spec(hr_runtime *runtime, uint32_t index)
{
    /* The list never changes once it is made. */
    return index < hr_runtime_device_count(runtime) ? runtime->specs[index] : NULL;
}

const char *hr_runtime_absent(hr_runtime *runtime, uint32_t index)
{
    pthread_mutex_lock(&runtime->lock);
    list_specs(runtime);
    const char *text = index < runtime->absent_count ? runtime->absent[index] : NULL;
    pthread_mutex_unlock(&runtime->lock);
    return text;
}

/* Under the lock. The reason that was kept for a backend, or null. */
static const char *absent_reason(const hr_runtime *runtime, const char *name, size_t length)
{
    for (uint32_t i = 0; i < runtime->absent_count; i++) {
        if (strncmp(runtime->absent[i], name, length) == 0 && runtime->absent[i][length] == ':') {
            return runtime->absent[i];
        }
    }
    return NULL;
}

static hr_status fail_no_backend(hr_runtime *runtime, const char *spec, size_t length, hr_error *error)
{
    const char *reason = absent_reason(runtime, spec, length);
    if (reason != NULL) {
        return hr_fail(error, HR_E_UNSUPPORTED, "device %.60s: %.400s", spec, reason + length + 2);
    }
    char known[128] = "auto";
    for (uint32_t i = 0; i < runtime->backend_count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, ", %s", runtime->backends[i].backend->name);
    }
    return hr_fail(error, HR_E_NOT_FOUND, "device %.100s: no such device; there are %s", spec, known);
}

hr_status hr_runtime_find_backend(hr_runtime *runtime, const char *spec, const hr_backend **backend,
                                  const char **rest, hr_error *error)
{
    size_t length = strcspn(spec, ":,");
    hr_status status = HR_OK;
    pthread_mutex_lock(&runtime->lock);
    registered *found = NULL;
    for (uint32_t i = 0; i < runtime->backend_count; i++) {
        const char *name = runtime->backends[i].backend->name;
        if (strlen(name) == length && strncmp(name, spec, length) == 0) {
            found = &runtime->backends[i];
        }
    }
    if (found != NULL) {
        probe(runtime, found);
    }
    if (found == NULL || found->count == 0) {
        status = fail_no_backend(runtime, spec, length, error);
    } else {
        *backend = found->backend;
        *rest = spec + length;
    }
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

void hr_runtime_count_device(hr_runtime *runtime, int change)
{
    atomic_fetch_add(&runtime->open_devices, (uint32_t)change);
}

void hr_runtime_auto_spec(hr_runtime *runtime, char *spec, size_t room)
{
    const char *first = hr_runtime_device_spec(runtime, 0);
    snprintf(spec, room, "%s", first != NULL ? first : "cpu");
}

/* Calls `each` for the comma-separated numbers that follow "name:". */
static hr_status expand_numbers(const char *name, int length, const char *numbers,
                                hr_status (*each)(void *user, const char *spec), void *user)
{
    while (*numbers != '\0') {
        int digits = (int)strspn(numbers, "0123456789");
        char spec[SPEC_BYTES];
        snprintf(spec, sizeof spec, "%.*s:%.*s", length, name, digits, numbers);
        hr_status status = each(user, spec);
        if (status != HR_OK) {
            return status;
        }
        numbers += digits + (numbers[digits] == ',');
    }
    return HR_OK;
}

/* "0,1,2": digits between commas, none missing. */
static bool is_number_list(const char *text)
{
    for (;;) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 9) {
            return false;
        }
        text += digits;
        if (*text == '\0') {
            return true;
        }
        if (*text++ != ',') {
            return false;
        }
    }
}

hr_status hr_device_expand(hr_runtime *runtime, const char *spec,
                           hr_status (*each)(void *user, const char *spec), void *user, hr_error *error)
{
    if (runtime == NULL || spec == NULL || each == NULL) {
        return hr_fail(error, HR_E_INVALID, "device spec: a null argument");
    }
    if (strcmp(spec, "auto") == 0) {
        char chosen[SPEC_BYTES];
        hr_runtime_auto_spec(runtime, chosen, sizeof chosen);
        return each(user, chosen);
    }
    const hr_backend *backend;
    const char *rest = spec;
    hr_status status = hr_runtime_find_backend(runtime, spec, &backend, &rest, error);
    if (status != HR_OK) {
        return status;
    }
    int length = (int)(rest - spec);
    if (strcmp(rest, ":all") == 0) {
        uint32_t count = hr_runtime_device_count(runtime);
        for (uint32_t i = 0; i < count && status == HR_OK; i++) {
            const char *one = hr_runtime_device_spec(runtime, i);
            if (strncmp(one, spec, (size_t)length) == 0 && (one[length] == ':' || one[length] == '\0')) {
                status = each(user, one);
            }
        }
        return status;
    }
    if (*rest == ':' && is_number_list(rest + 1)) {
        return expand_numbers(spec, length, rest + 1, each, user);
    }
    return each(user, spec);
}

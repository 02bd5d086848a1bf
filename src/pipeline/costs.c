/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/costs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER      "headrace-costs 1\n"
#define FILE_NAME   "headrace/costs-1.txt"
#define MOST_BYTES  ((size_t)1 << 20)
#define SAME_WITHIN 0.1

static void choose_path(const char *cost_file, char *path, size_t room)
{
    path[0] = '\0';
    int length;
    if (cost_file != NULL) {
        length = snprintf(path, room, "%s", cost_file);
    } else {
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        if (cache != NULL && cache[0] == '/') {
            length = snprintf(path, room, "%s/%s", cache, FILE_NAME);
        } else if (home != NULL && home[0] == '/') {
            length = snprintf(path, room, "%s/.cache/%s", home, FILE_NAME);
        } else {
            return;
        }
    }
    if (length < 0 || (size_t)length >= room) {
        path[0] = '\0';
    }
}

/* The whole file as text that the caller frees; null if there is none that is ours. */
static char *read_text(const char *path)
{
    FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
    char *text = file != NULL ? malloc(MOST_BYTES + 1) : NULL;
    size_t bytes = 0;
    if (text != NULL) {
        bytes = fread(text, 1, MOST_BYTES, file);
        text[bytes] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    if (text != NULL && (bytes == MOST_BYTES || strncmp(text, HEADER, strlen(HEADER)) != 0)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Is this line the head of a section, and of ours? */
static bool is_section(const char *line, size_t length)
{
    return length > 7 && strncmp(line, "device ", 7) == 0;
}

static bool is_ours(const hr_costs *costs, const char *line, size_t length)
{
    return length == 7 + strlen(costs->key) && strncmp(line + 7, costs->key, length - 7) == 0;
}

typedef struct points {
    size_t count;
    double bytes[HR_COST_MAX_POINTS], seconds[HR_COST_MAX_POINTS];
} points;

static void read_point(const char *text, points *link)
{
    char *end;
    double bytes = strtod(text, &end);
    double seconds = strtod(end, &end);
    if (link->count < HR_COST_MAX_POINTS) {
        link->bytes[link->count] = bytes;
        link->seconds[link->count++] = seconds;
    }
}

static void read_duplex(hr_costs *costs, const char *text)
{
    char *end;
    double in = strtod(text, &end);
    double out = strtod(end, NULL);
    if (isfinite(in) && isfinite(out) && in > 0.0 && out > 0.0) {
        costs->h2d_with_d2h = in;
        costs->d2h_with_h2d = out;
    }
}

static void read_rate(hr_costs *costs, const char *text)
{
    char name[HR_COSTS_NAME];
    int used = 0;
    if (sscanf(text, "%47s%n", name, &used) == 1) {
        double value = strtod(text + used, NULL);
        hr_costs_set_rate(costs, name, value);
    }
}

static void read_section(hr_costs *costs, const char *text)
{
    bool ours = false;
    points h2d = {0}, d2h = {0};
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (is_section(line, length)) {
            ours = is_ours(costs, line, length);
        } else if (ours && strncmp(line, "h2d ", 4) == 0) {
            read_point(line + 4, &h2d);
        } else if (ours && strncmp(line, "d2h ", 4) == 0) {
            read_point(line + 4, &d2h);
        } else if (ours && strncmp(line, "duplex ", 7) == 0) {
            read_duplex(costs, line + 7);
        } else if (ours && strncmp(line, "rate ", 5) == 0) {
            read_rate(costs, line + 5);
        }
        line += length + (line[length] == '\n');
    }
    hr_cost_link link;
    if (hr_cost_link_make(h2d.bytes, h2d.seconds, h2d.count, &link) == HR_OK) {
        costs->h2d = link;
    }
    if (hr_cost_link_make(d2h.bytes, d2h.seconds, d2h.count, &link) == HR_OK) {
        costs->d2h = link;
    }
}

void hr_costs_load(const hr_device_info *info, const char *cost_file, hr_costs *costs)
{
    memset(costs, 0, sizeof *costs);
    choose_path(cost_file, costs->path, sizeof costs->path);
    snprintf(costs->key, sizeof costs->key, "%s | %s | %s", info->name, info->driver, info->spec);
    char *text = read_text(costs->path);
    if (text != NULL) {
        read_section(costs, text);
        free(text);
    }
    costs->changed = false;
}

double hr_costs_rate(const hr_costs *costs, const char *name)
{
    for (uint32_t i = 0; i < costs->rate_count; i++) {
        if (strcmp(costs->rates[i].name, name) == 0) {
            return costs->rates[i].value;
        }
    }
    return 0.0;
}

void hr_costs_set_rate(hr_costs *costs, const char *name, double value)
{
    /* A name with a space in it could not be read again. */
    if (!isfinite(value) || value <= 0.0 || strlen(name) >= HR_COSTS_NAME || strpbrk(name, " \t\n") != NULL) {
        return;
    }
    uint32_t at = 0;
    while (at < costs->rate_count && strcmp(costs->rates[at].name, name) != 0) {
        at++;
    }
    if (at == HR_COSTS_MAX_RATES) {
        return;
    }
    if (at == costs->rate_count) {
        costs->rate_count++;
        snprintf(costs->rates[at].name, sizeof costs->rates[at].name, "%s", name);
        costs->rates[at].value = 0.0;
    }
    double old = costs->rates[at].value;
    if (fabs(value - old) > SAME_WITHIN * old) {
        costs->rates[at].value = value;
        costs->changed = true;
    }
}

/* Everything of the old file but our section. */
static void copy_others(const hr_costs *costs, const char *text, FILE *out)
{
    bool ours = false;
    for (const char *line = text + strlen(HEADER); *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (is_section(line, length)) {
            ours = is_ours(costs, line, length);
        }
        if (!ours) {
            fprintf(out, "%.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
}

static void write_link(const char *name, const hr_cost_link *link, FILE *out)
{
    for (size_t i = 0; i < link->count; i++) {
        fprintf(out, "%s %.17g %.9g\n", name, link->bytes[i], link->seconds[i]);
    }
}

static void write_all(const hr_costs *costs, FILE *out)
{
    fputs(HEADER, out);
    char *text = read_text(costs->path);
    if (text != NULL) {
        copy_others(costs, text, out);
        free(text);
    }
    fprintf(out, "device %s\n", costs->key);
    write_link("h2d", &costs->h2d, out);
    write_link("d2h", &costs->d2h, out);
    if (costs->h2d_with_d2h > 0.0 && costs->d2h_with_h2d > 0.0) {
        fprintf(out, "duplex %.6g %.6g\n", costs->h2d_with_d2h, costs->d2h_with_h2d);
    }
    for (uint32_t i = 0; i < costs->rate_count; i++) {
        fprintf(out, "rate %s %.6g\n", costs->rates[i].name, costs->rates[i].value);
    }
}

static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            return; /* opening the file will tell */
        }
        *slash = '/';
    }
}

hr_status hr_costs_save(hr_costs *costs, hr_error *error)
{
    if (costs->path[0] == '\0' || !costs->changed) {
        return HR_OK;
    }
    make_folders(costs->path);
    char beside[PATH_MAX + 16];
    snprintf(beside, sizeof beside, "%s.XXXXXX", costs->path);
    int descriptor = mkostemp(beside, O_CLOEXEC);
    FILE *out = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (out == NULL) {
        int code = errno;
        if (descriptor >= 0) {
            close(descriptor);
            unlink(beside);
        }
        return hr_fail(error, HR_E_IO, "%s: %s", costs->path, strerror(code));
    }
    write_all(costs, out);
    bool good = ferror(out) == 0;
    good = fclose(out) == 0 && good;
    if (!good || rename(beside, costs->path) != 0) {
        int code = errno;
        unlink(beside);
        return hr_fail(error, HR_E_IO, "%s: %s", costs->path, strerror(code));
    }
    costs->changed = false;
    return HR_OK;
}

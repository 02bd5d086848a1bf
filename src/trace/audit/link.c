/* SPDX-License-Identifier: Apache-2.0 */
/* Link speeds out of what `headrace bench link --json` printed. */
#include "trace/audit/audit.h"
#include "trace/read/input.h"
#include "trace/read/json.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4 * 1024 * 1024 };

static hr_status load(const char *path, char **text, size_t *length, hr_error *error)
{
    hr_trace_input *input = NULL;
    char *bytes = calloc(1, MOST_BYTES + HR_JSON_PAD);
    size_t at = 0;
    hr_status status = bytes != NULL ? hr_trace_input_open(path, &input, error)
                                     : hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to read it", path);
    while (status == HR_OK) {
        size_t got;
        status = hr_trace_input_read(input, bytes + at, MOST_BYTES - at, &got, error);
        if (status == HR_OK && got == 0)
            break;
        at += status == HR_OK ? got : 0;
        if (status == HR_OK && at == MOST_BYTES)
            status = hr_fail(error, HR_E_INVALID, "%s: is too long for a report of bench link", path);
    }
    hr_trace_input_close(&input);
    if (status != HR_OK) {
        free(bytes);
        return status;
    }
    *text = bytes;
    *length = at;
    return HR_OK;
}

typedef struct hr_link_row {
    hr_json_text name, gbps;
} hr_link_row;

static void take_field(void *user, const hr_json_text *key, const hr_json_text *value)
{
    hr_link_row *row = user;
    if (hr_json_is(key, "name"))
        row->name = *value;
    else if (hr_json_is(key, "gbps"))
        row->gbps = *value;
}

/* The best of the rows of one name: large copies reach what the link can do. */
static void take_row(const hr_link_row *row, hr_link *link, double *best_h2d, double *best_d2h)
{
    int64_t thousandths;
    if (row->gbps.length == 0 || !hr_json_thousandths(&row->gbps, &thousandths) || thousandths <= 0)
        return;
    double gbps = (double)thousandths / 1000.0;
    if (hr_json_is(&row->name, "h2d pinned") && gbps > *best_h2d) {
        *best_h2d = link->h2d = gbps;
        link->h2d_source = "the link file";
    }
    if (hr_json_is(&row->name, "d2h pinned") && gbps > *best_d2h) {
        *best_d2h = link->d2h = gbps;
        link->d2h_source = "the link file";
    }
}

static bool scan_rows(hr_json *json, hr_link *link, bool *any)
{
    double best_h2d = 0.0;
    double best_d2h = 0.0;
    if (!hr_json_take(json, '['))
        return false;
    while (!hr_json_take(json, ']')) {
        hr_link_row row = {0};
        hr_json_take(json, ',');
        if (!hr_json_object(json, take_field, &row))
            return false;
        take_row(&row, link, &best_h2d, &best_d2h);
    }
    *any = best_h2d > 0.0 || best_d2h > 0.0;
    return true;
}

hr_status hr_audit_read_link(const char *path, hr_link *link, hr_error *error)
{
    char *text = NULL;
    size_t length = 0;
    bool any = false;
    hr_status status = load(path, &text, &length, error);
    if (status != HR_OK)
        return status;
    hr_json json = {text, text + length};
    bool whole = hr_json_take(&json, '{');
    while (whole && !hr_json_take(&json, '}')) {
        hr_json_text key;
        hr_json_take(&json, ',');
        whole = hr_json_string(&json, &key) && hr_json_take(&json, ':') &&
                (hr_json_is(&key, "rows") ? scan_rows(&json, link, &any) : hr_json_skip(&json));
    }
    hr_json_space(&json);
    whole = whole && json.at == json.end;
    if (!whole)
        status = hr_fail(error, HR_E_INVALID,
                         "%s: byte %zu is not what a report of `headrace bench link --json` has", path,
                         (size_t)(json.at - text));
    free(text);
    if (status != HR_OK)
        return status;
    if (!any)
        return hr_fail(error, HR_E_INVALID, "%s: has no row \"h2d pinned\" or \"d2h pinned\" with its gbps",
                       path);
    return HR_OK;
}

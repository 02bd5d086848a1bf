/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a run. Each row is a stage (of a device, where there are several); each column is a slice of
 * the time, filled by the share of it in which the stage was busy. Overlap is what stands below each other.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_ROWS = 64, STAGE_LABEL = 8, DEVICE_LABEL = 16, SHARE = 8 };

typedef struct timeline_row {
    hr_stage stage;
    const char *device; /* null for host work */
    double *busy;       /* nanoseconds in each column */
    uint64_t until_ns;  /* what was counted so far */
    double total_ns;
} timeline_row;

typedef struct timeline {
    timeline_row rows[MAX_ROWS];
    size_t row_count;
    int columns;
    int label; /* width of what stands before a row; it names the device only where there are several */
    uint64_t begin_ns, end_ns;
} timeline;

int timeline_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *text = getenv("COLUMNS");
    uint64_t columns;
    return text && cli_parse_count(text, 40, 1000, &columns) ? (int)columns : 80;
}

bool timeline_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static int by_begin(const void *a, const void *b)
{
    const hr_span *left = a, *right = b;
    return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

static bool same_device(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static timeline_row *row_of(timeline *line, const hr_span *span)
{
    for (size_t i = 0; i < line->row_count; i++) {
        timeline_row *row = &line->rows[i];
        if (row->stage == span->stage && same_device(row->device, span->device))
            return row;
    }
    if (line->row_count == MAX_ROWS)
        return NULL;
    timeline_row *row = &line->rows[line->row_count];
    *row = (timeline_row){.stage = span->stage, .device = span->device};
    row->busy = calloc((size_t)line->columns, sizeof *row->busy);
    if (!row->busy)
        return NULL;
    line->row_count++;
    return row;
}

/* Adds [begin, end) to the columns that it touches. */
static void add_busy(const timeline *line, timeline_row *row, uint64_t begin, uint64_t end)
{
    double width = (double)(line->end_ns - line->begin_ns) / line->columns;
    double from = (double)(begin - line->begin_ns), to = (double)(end - line->begin_ns);
    row->total_ns += to - from;
    for (int column = (int)(from / width); column < line->columns && column * width < to; column++) {
        double low = from > column * width ? from : column * width;
        double high = to < (column + 1) * width ? to : (column + 1) * width;
        if (high > low)
            row->busy[column] += high - low;
    }
}

/* Spans come in the order of their beginnings, so the union grows to the right. */
static void add_span(timeline *line, const hr_span *span)
{
    timeline_row *row = row_of(line, span);
    if (!row)
        return;
    uint64_t begin = span->begin_ns > row->until_ns ? span->begin_ns : row->until_ns;
    if (span->end_ns > begin) {
        add_busy(line, row, begin, span->end_ns);
        row->until_ns = span->end_ns;
    }
}

static void print_row(FILE *to, const timeline *line, const timeline_row *row, bool utf8)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ".", ":", ":", "-", "=", "+", "#"};
    char label[DEVICE_LABEL];
    bool device = row->device && line->label == DEVICE_LABEL;
    double width = (double)(line->end_ns - line->begin_ns) / line->columns;
    snprintf(label, sizeof label, "%s%s%s", hr_stage_name(row->stage), device ? " " : "",
             device ? row->device : "");
    fprintf(to, "%-*s", line->label, label);
    for (int column = 0; column < line->columns; column++) {
        double share = row->busy[column] / width;
        /* Anything at all is visible, and only a full column looks full. */
        int level = share <= 0 ? 0 : share > 0.985 ? 8 : 1 + (int)(share * 6.999);
        fputs((utf8 ? blocks : letters)[level], to);
    }
    fprintf(to, " %4.0f %%\n", 100 * row->total_ns / (double)(line->end_ns - line->begin_ns));
}

static int by_stage(const void *a, const void *b)
{
    const timeline_row *left = a, *right = b;
    if (left->stage != right->stage)
        return left->stage < right->stage ? -1 : 1;
    return strcmp(left->device ? left->device : "", right->device ? right->device : "");
}

static void print_axis(FILE *to, const timeline *line)
{
    char end[32];
    double seconds = 1e-9 * (double)(line->end_ns - line->begin_ns);
    int length = seconds < 1 ? snprintf(end, sizeof end, "%.1f ms", seconds * 1e3)
                             : snprintf(end, sizeof end, "%.2f s", seconds);
    fprintf(to, "%*s0%*s%s   busy\n", line->label, "", line->columns - 1 - length, "", end);
}

static bool several_devices(const hr_span *spans, size_t count)
{
    const char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].device && first && !same_device(first, spans[i].device))
            return true;
        first = spans[i].device ? spans[i].device : first;
    }
    return false;
}

void timeline_print(FILE *to, const hr_span *spans, size_t count, int columns, bool utf8)
{
    int label = several_devices(spans, count) ? DEVICE_LABEL : STAGE_LABEL;
    timeline line = {.columns = columns - label - SHARE, .label = label, .begin_ns = UINT64_MAX};
    if (line.columns < 20)
        line.columns = 20;
    hr_span *sorted = count ? calloc(count, sizeof *sorted) : NULL;
    if (!sorted)
        return;
    memcpy(sorted, spans, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_begin);
    for (size_t i = 0; i < count; i++) {
        line.begin_ns = sorted[i].begin_ns < line.begin_ns ? sorted[i].begin_ns : line.begin_ns;
        line.end_ns = sorted[i].end_ns > line.end_ns ? sorted[i].end_ns : line.end_ns;
    }
    if (line.end_ns > line.begin_ns) {
        for (size_t i = 0; i < count; i++)
            add_span(&line, &sorted[i]);
        qsort(line.rows, line.row_count, sizeof *line.rows, by_stage);
        print_axis(to, &line);
        for (size_t i = 0; i < line.row_count; i++)
            print_row(to, &line, &line.rows[i], utf8);
    }
    for (size_t i = 0; i < line.row_count; i++)
        free(line.rows[i].busy);
    free(sorted);
}

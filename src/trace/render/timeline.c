/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/timeline.h"

#include <inttypes.h>
#include <string.h>

enum { CELLS = 78, MOST_ROWS = 8, LABEL = 16 };

/*
 * A typical step: the time between two launches of the kernel that took the most time altogether, of middling
 * length, in the middle of the run; two of them are shown. Without repetition, the middle tenth.
 */
static uint32_t heaviest_kernel(const hr_trace *trace, uint32_t *uses)
{
    /* A handful of names takes nearly all of the time: compare only those seen in the middle of the run. */
    enum { CANDIDATES = 64 };
    uint32_t best = HR_NONE;
    int64_t best_ns = 0;
    *uses = 0;
    uint32_t from = trace->work_count / 2;
    for (uint32_t c = from; c < trace->work_count && c < from + CANDIDATES; c++) {
        const hr_event *candidate = &trace->events[trace->work[c]];
        if (candidate->kind != HR_EVENT_KERNEL || candidate->name == best)
            continue;
        int64_t sum = 0;
        uint32_t count = 0;
        for (uint32_t i = 0; i < trace->work_count; i++) {
            const hr_event *event = &trace->events[trace->work[i]];
            if (event->kind == HR_EVENT_KERNEL && event->name == candidate->name &&
                event->device == candidate->device) {
                sum += hr_event_ns(event);
                count++;
            }
        }
        if (count >= 3 && sum > best_ns) {
            best = candidate->name;
            best_ns = sum;
            *uses = count;
        }
    }
    return best;
}

/* Returns what the window is, for the heading. */
static const char *choose_window(const hr_trace *trace, int64_t *begin_ns, int64_t *end_ns)
{
    static const char part[] = "A tenth of the run, from its middle";
    uint32_t uses;
    uint32_t name = heaviest_kernel(trace, &uses);
    int64_t span = trace->work_end_ns - trace->work_begin_ns;
    *begin_ns = trace->work_begin_ns + span * 9 / 20;
    *end_ns = *begin_ns + span / 10;
    if (name == HR_NONE)
        return part;
    uint32_t seen = 0;
    int64_t first = -1;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind != HR_EVENT_KERNEL || event->name != name)
            continue;
        seen++;
        if (seen == uses / 2)
            first = event->begin_ns;
        if (first >= 0 && seen == uses / 2 + 2 && event->begin_ns > first) {
            int64_t length = event->begin_ns - first;
            *begin_ns = first - length / 8;
            *end_ns = event->begin_ns + length / 8;
            return "Two steps in the middle";
        }
    }
    return part;
}

typedef struct hr_row {
    char label[LABEL + 1];
    char cells[CELLS];
    int64_t covered[CELLS]; /* by what is shown */
    int64_t busy[CELLS];    /* by anything */
} hr_row;

static char mark_of(const hr_event *event)
{
    if (event->kind == HR_EVENT_KERNEL)
        return '#';
    if (event->kind == HR_EVENT_FILL)
        return 'f';
    if (event->kind == HR_EVENT_COPY)
        return event->direction == HR_DIRECTION_H2D ? '>' : event->direction == HR_DIRECTION_D2H ? '<' : '=';
    return hr_call_is_sync((hr_call)event->call) ? 'w' : '.';
}

/* Each cell shows what covers most of it. */
static void draw(hr_row *row, const hr_event *event, int64_t begin_ns, int64_t end_ns)
{
    int64_t width = (end_ns - begin_ns) / CELLS + 1;
    int64_t from = (event->begin_ns - begin_ns) / width;
    int64_t to = (event->end_ns - begin_ns) / width;
    for (int64_t cell = from < 0 ? 0 : from; cell <= to && cell < CELLS; cell++) {
        int64_t cell_begin = begin_ns + cell * width;
        int64_t low = event->begin_ns > cell_begin ? event->begin_ns : cell_begin;
        int64_t high = event->end_ns < cell_begin + width ? event->end_ns : cell_begin + width;
        row->busy[cell] += high > low ? high - low : 0;
        if (high - low > row->covered[cell] || (row->cells[cell] == ' ' && high >= low && high > low)) {
            row->covered[cell] = high - low;
            row->cells[cell] = mark_of(event);
        }
    }
}

static void clear(hr_row *row)
{
    memset(row, 0, sizeof *row);
    memset(row->cells, ' ', CELLS);
}

static bool in_window(const hr_event *event, int64_t begin_ns, int64_t end_ns)
{
    return event->end_ns > begin_ns && event->begin_ns < end_ns;
}

/* A cell that is idle for most of its time shows that, with a trace of what there was. */
static void thin_out(hr_row *row, int64_t width_ns)
{
    for (size_t i = 0; i < CELLS; i++) {
        if (row->cells[i] != ' ' && row->busy[i] * 3 < width_ns)
            row->cells[i] = ':';
    }
}

static void put_row(const hr_row *row, FILE *out)
{
    fprintf(out, "%*s |%.*s|\n", LABEL, row->label, CELLS, row->cells);
}

/* Does the row of this stream or thread have anything in the window? Fills it. */
static bool fill_row(const hr_trace *trace, hr_row *row, uint32_t stream, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns)
{
    bool any = false;
    clear(row);
    for (uint32_t i = 0; i < trace->event_count && trace->events[i].begin_ns < end_ns; i++) {
        const hr_event *event = &trace->events[i];
        bool work = stream != HR_NONE && hr_event_is_work(event) && event->stream == stream;
        bool call =
            thread != HR_NONE && event->kind == HR_EVENT_CALL && event->thread == thread && !event->nested;
        if ((!work && !call) || !in_window(event, begin_ns, end_ns))
            continue;
        any = true;
        draw(row, event, begin_ns, end_ns);
    }
    thin_out(row, (end_ns - begin_ns) / CELLS + 1);
    return any;
}

hr_status hr_render_timeline(const hr_report *report, FILE *out, hr_error *error)
{
    const hr_trace *trace = report->trace;
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t rows = 0;
    hr_row row;
    (void)error;
    const char *what = choose_window(trace, &begin_ns, &end_ns);
    if (end_ns <= begin_ns)
        return HR_OK;
    fprintf(out, "\n%s, %.3f ms, from %.3f ms on:\n", what, (double)(end_ns - begin_ns) / 1e6,
            (double)begin_ns / 1e6);
    for (uint32_t t = 0; t < trace->thread_count && rows < MOST_ROWS / 2; t++) {
        if (!fill_row(trace, &row, HR_NONE, t, begin_ns, end_ns))
            continue;
        snprintf(row.label, sizeof row.label, "host %" PRId64, (int64_t)trace->threads[t].id);
        put_row(&row, out);
        rows++;
    }
    for (uint32_t s = 0; s < trace->stream_count && rows < MOST_ROWS; s++) {
        if (!fill_row(trace, &row, s, HR_NONE, begin_ns, end_ns))
            continue;
        uint64_t device =
            trace->streams[s].device < trace->device_count ? trace->devices[trace->streams[s].device].id : 0;
        if (report->device_count > 1)
            snprintf(row.label, sizeof row.label, "GPU %" PRIu64 " str. %" PRIu64, device,
                     trace->streams[s].id);
        else
            snprintf(row.label, sizeof row.label, "stream %" PRIu64, trace->streams[s].id);
        put_row(&row, out);
        rows++;
    }
    fprintf(out, "%*s  # kernel  > copy in  < copy out  = within  f fill  . call  w wait  : mostly idle\n",
            LABEL, "");
    return HR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as one HTML file that works offline: style and script from page/, and the audit as one JSON
 * object in the page. A timeline is a list of rows; a row holds its events as a flat list of integers, five
 * an event: begin minus the begin before, duration, name, bytes, and index minus the index before, so that a
 * hundred thousand events stay a few megabytes.
 */
#include "trace/render/html.h"

#include "trace/render/json_text.h"
#include "trace/render/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A browser draws this many without being slow; a longer trace loses its shortest events, and the page says
 * so. */
#define HR_HTML_EVENTS   200000u
#define HR_HTML_EVIDENCE 5000u
#define HR_HTML_WHERE    12u

typedef struct html_page {
    const hr_report *report;
    const hr_trace *trace;
    FILE *out;
    uint32_t *name_of; /* string index → index in the page's list, HR_NONE: not used yet */
    uint32_t *names;   /* the page's list */
    uint32_t name_count;
    int64_t shortest_ns; /* events shorter than this are left out */
    uint64_t left_out;
} html_page;

/* One line of the timeline: which events it shows. */
typedef struct row {
    const char *group;
    const char *label;
    uint8_t kind; /* 'i' copies in, 'o' copies out, 'k' kernels, 'f' fills and other copies, 's' a stream, 't'
                     a thread */
    uint32_t device, index;
} row;

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static bool shows(const row *line, const hr_event *event)
{
    if (line->kind == 't') {
        return event->kind == HR_EVENT_CALL && event->thread == line->index && !event->nested;
    }
    if (!hr_event_is_work(event) || event->device != line->device) {
        return false;
    }
    switch (line->kind) {
    case 'i':
        return hr_event_is_upload(event);
    case 'o':
        return hr_event_is_download(event);
    case 'k':
        return event->kind == HR_EVENT_KERNEL;
    case 'f':
        return event->kind == HR_EVENT_FILL ||
               (event->kind == HR_EVENT_COPY && !hr_event_is_upload(event) && !hr_event_is_download(event));
    default:
        return event->stream == line->index;
    }
}

static uint32_t page_name(html_page *page, uint32_t string)
{
    if (string >= page->trace->string_count) {
        string = 0;
    }
    if (page->name_of[string] == HR_NONE) {
        page->name_of[string] = page->name_count;
        page->names[page->name_count++] = string;
    }
    return page->name_of[string];
}

/* The row's events, today's or the prediction's, as a list. Returns how many there are. */
static uint32_t write_events(html_page *page, const row *line, bool fixed)
{
    const hr_trace *trace = page->trace;
    int64_t last_begin = 0;
    uint32_t last_index = 0, written = 0;
    fputc('[', page->out);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (!shows(line, event)) {
            continue;
        }
        int64_t begin = fixed ? page->report->fixed_begin_ns[i] : event->begin_ns;
        int64_t end = fixed ? page->report->fixed_end_ns[i] : event->end_ns;
        if (begin < 0 || end < begin) {
            continue;
        }
        if (hr_event_ns(event) < page->shortest_ns) {
            page->left_out += !fixed;
            continue;
        }
        fprintf(page->out, "%s%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32,
                written == 0 ? "" : ",", begin - last_begin, end - begin, page_name(page, event->name),
                event->bytes, i - last_index);
        last_begin = begin;
        last_index = i;
        written++;
    }
    fputc(']', page->out);
    return written;
}

static bool row_is_empty(const html_page *page, const row *line)
{
    for (uint32_t i = 0; i < page->trace->event_count; i++) {
        if (shows(line, &page->trace->events[i])) {
            return false;
        }
    }
    return true;
}

static void write_row(html_page *page, const row *line, bool *first)
{
    if (row_is_empty(page, line)) {
        return;
    }
    fputs(*first ? "{\"group\":" : ",\n{\"group\":", page->out);
    *first = false;
    hr_json_text(page->out, line->group);
    fputs(",\"label\":", page->out);
    hr_json_text(page->out, line->label);
    fprintf(page->out, ",\"kind\":\"%c\",\"today\":", line->kind);
    write_events(page, line, false);
    if (page->report->fixed_begin_ns != NULL && page->report->fixed_end_ns != NULL) {
        fputs(",\"fixed\":", page->out);
        write_events(page, line, true);
    }
    fputc('}', page->out);
}

static void write_device_rows(html_page *page, uint32_t device, bool *first)
{
    static const struct {
        uint8_t kind;
        const char *label;
    } engines[] = {{'i', "copies in"}, {'k', "kernels"}, {'o', "copies out"}, {'f', "fills, other copies"}};
    const hr_trace *trace = page->trace;
    char group[192], label[64];
    snprintf(group, sizeof group, "GPU %" PRIu64 " · %s", trace->devices[device].id,
             hr_trace_text(trace, trace->devices[device].name));
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        write_row(page, &(row){group, engines[i].label, engines[i].kind, device, HR_NONE}, first);
    }
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        const hr_trace_stream *stream = &trace->streams[s];
        if (stream->device == device) {
            snprintf(label, sizeof label, "stream %" PRIu64 "%s", stream->id,
                     stream->flag == HR_STREAM_FLAG_NULL ? " (default)" : "");
            write_row(page, &(row){group, label, 's', device, s}, first);
        }
    }
}

/* "thread 7", with its name unless that says the number already. */
static void named(char *text, size_t room, const char *what, uint64_t id, const char *name)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, id);
    if (strstr(name, number) != NULL)
        snprintf(text, room, "%s", name);
    else
        snprintf(text, room, "%s %s %s", what, number, name);
}

static void write_rows(html_page *page)
{
    const hr_trace *trace = page->trace;
    bool first = true;
    char group[192], label[192];
    fputs("\"rows\":[", page->out);
    for (uint32_t t = 0; t < trace->thread_count; t++) {
        const hr_trace_thread *thread = &trace->threads[t];
        const hr_trace_process *process = &trace->processes[thread->process];
        named(group, sizeof group, "process", process->id, hr_trace_text(trace, process->name));
        named(label, sizeof label, "thread", thread->id, hr_trace_text(trace, thread->name));
        write_row(page, &(row){group, label, 't', HR_NONE, t}, &first);
    }
    for (uint32_t d = 0; d < page->report->device_count; d++) {
        write_device_rows(page, page->report->devices[d].device, &first);
    }
    fputs("],\n\"names\":[", page->out);
    for (uint32_t n = 0; n < page->name_count; n++) {
        fputs(n == 0 ? "" : ",", page->out);
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
        hr_json_text(page->out, hr_trace_text(trace, page->names[n]));
    }
    fputs("],\n", page->out);
}

static void write_where(html_page *page, const hr_finding *finding)
{
    const hr_trace *trace = page->trace;
    fputs(",\"where\":[", page->out);
    for (uint32_t w = 0; w < finding->where_count && w < HR_HTML_WHERE; w++) {
        const hr_where *where = &finding->where[w];
        fputs(w == 0 ? "{\"api\":" : ",{\"api\":", page->out);
        hr_json_text(page->out, where->name == HR_NONE ? "" : hr_trace_text(trace, where->name));
        if (where->thread < trace->thread_count) {
            fprintf(page->out, ",\"thread\":\"%" PRIu64 "\"", trace->threads[where->thread].id);
        }
        if (where->stream < trace->stream_count) {
            fprintf(page->out, ",\"stream\":\"%" PRIu64 "\"", trace->streams[where->stream].id);
        }
        fprintf(page->out,
                ",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"first_ms\":%.3f,\"blocked_ms\":%.3f}",
                where->count, where->bytes, ms(where->first_ns), ms(where->blocked_ns));
    }
    fprintf(page->out, "],\"where_count\":%" PRIu32, finding->where_count);
}

static void write_finding(html_page *page, const hr_finding *finding)
{
    static const char *const kinds[] = {"defect", "information", "suspended"};
    const uint32_t *evidence = finding->evidence_count > 0 ? finding->evidence : finding->repair.events;
    uint32_t count = finding->evidence_count > 0 ? finding->evidence_count : finding->repair.count;
    fputs("{\"rule\":", page->out);
    hr_json_text(page->out, finding->rule);
    fprintf(page->out,
            ",\"kind\":\"%s\",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"blocked_ms\":%.3f,\"cost_ms\":%.3f,\"after_ms\":%.3f,\"masked\":%s,\"text\":",
            kinds[finding->kind], finding->count, finding->bytes, ms(finding->blocked_ns),
            ms(finding->cost_ns), ms(finding->after_ns), finding->masked ? "true" : "false");
    char text[sizeof finding->text + 32];
    bool one_of_many = page->report->device_count > 1 && finding->device < page->trace->device_count;
    if (one_of_many)
        snprintf(text, sizeof text, "GPU %" PRIu64 ": %s", page->trace->devices[finding->device].id,
                 finding->text);
    hr_json_text(page->out, one_of_many ? text : finding->text);
    fputs(",\"fix\":", page->out);
    hr_json_text(page->out, finding->fix);
    fputs(",\"proof\":", page->out);
    hr_json_text(page->out, finding->proof);
    write_where(page, finding);
    fputs(",\"events\":[", page->out);
    for (uint32_t e = 0; e < count && e < HR_HTML_EVIDENCE; e++) {
        fprintf(page->out, "%s%" PRIu32, e == 0 ? "" : ",", evidence[e]);
    }
    fprintf(page->out, "],\"event_count\":%" PRIu32 "}", count);
}

static void write_findings(html_page *page)
{
    fputs("\"findings\":[", page->out);
    for (uint32_t f = 0; f < page->report->findings->count; f++) {
        fputs(f == 0 ? "" : ",\n", page->out);
        write_finding(page, &page->report->findings->at[f]);
    }
    fputs("],\n", page->out);
}

static void write_devices(html_page *page)
{
    const hr_trace *trace = page->trace;
    fputs("\"devices\":[", page->out);
    for (uint32_t d = 0; d < page->report->device_count; d++) {
        const hr_report_device *device = &page->report->devices[d];
        const hr_trace_usage *usage = &device->usage;
        fprintf(page->out, "%s{\"id\":%" PRIu64 ",\"name\":", d == 0 ? "" : ",",
                trace->devices[device->device].id);
        hr_json_text(page->out, hr_trace_text(trace, trace->devices[device->device].name));
        fprintf(page->out,
                ",\"span_ms\":%.3f,\"kernel_ms\":%.3f,\"copy_ms\":%.3f,\"h2d_ms\":%.3f,\"d2h_ms\":%.3f,"
                "\"overlap_ms\":%.3f,\"idle_ms\":%.3f,\"h2d_bytes\":%" PRIu64 ",\"d2h_bytes\":%" PRIu64
                ",\"kernels\":%" PRIu64 ",\"copies\":%" PRIu64 "}",
                ms(usage->span_ns), ms(usage->kernel_ns), ms(usage->copy_ns), ms(usage->h2d_ns),
                ms(usage->d2h_ns), ms(usage->overlap_ns), ms(usage->idle_ns), usage->h2d_bytes,
                usage->d2h_bytes, usage->kernels, usage->copies);
    }
    fputs("],\n", page->out);
}

static void write_data(html_page *page)
{
    static const char *const verdicts[] = {"found", "clean", "cannot-tell"};
    const hr_report *report = page->report;
    fputs("{\"path\":", page->out);
    const char *slash = strrchr(page->trace->path, '/');
    hr_json_text(page->out, slash == NULL ? page->trace->path : slash + 1);
    fprintf(page->out, ",\"verdict\":\"%s\",\"reason\":", verdicts[report->verdict]);
    hr_json_text(page->out, report->reason);
    fprintf(page->out,
            ",\"span_ms\":%.3f,\"replayed_ms\":%.3f,\"all_fixed_ms\":%.3f,\"bound\":", ms(report->span_ns),
            ms(report->replayed_ns), ms(report->all_fixed_ns));
    hr_json_text(page->out, report->bound == NULL ? "" : report->bound);
    fprintf(page->out, ",\"bound_ms\":%.3f,\"work_begin_ns\":%" PRId64 ",\"work_end_ns\":%" PRId64 ",\n",
            ms(report->bound_ns), page->trace->work_begin_ns, page->trace->work_end_ns);
    write_devices(page);
    write_findings(page);
    write_rows(page);
    fprintf(page->out, "\"left_out\":%" PRIu64 ",\"shortest_us\":%.3f}\n", page->left_out,
            (double)page->shortest_ns / 1e3);
}

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the length below which events are left out, so that the page stays quick. */
static hr_status choose_shortest(html_page *page, hr_error *error)
{
    const hr_trace *trace = page->trace;
    page->shortest_ns = 0;
    if (trace->event_count <= HR_HTML_EVENTS) {
        return HR_OK;
    }
    int64_t *length = malloc(trace->event_count * sizeof *length);
    if (length == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for the report", trace->path);
    }
    for (uint32_t i = 0; i < trace->event_count; i++) {
        length[i] = hr_event_ns(&trace->events[i]);
    }
    qsort(length, trace->event_count, sizeof *length, by_length);
    page->shortest_ns = length[trace->event_count - HR_HTML_EVENTS];
    free(length);
    return HR_OK;
}

static void write_page(html_page *page)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>Headrace audit</title>\n<style>\n",
          page->out);
    fwrite(hr_page_page_css, 1, hr_page_page_css_bytes, page->out);
    fputs("</style></head><body>\n<main id=\"report\"><noscript>This report draws itself with "
          "JavaScript.</noscript></main>\n"
          "<script type=\"application/json\" id=\"audit\">\n",
          page->out);
    write_data(page);
    fputs("</script>\n<script>\n", page->out);
    fwrite(hr_page_page_js, 1, hr_page_page_js_bytes, page->out);
    fputs("</script>\n</body></html>\n", page->out);
}

hr_status hr_render_html(const hr_report *report, FILE *out, hr_error *error)
{
    html_page page = {.report = report, .trace = report->trace, .out = out};
    hr_status status = choose_shortest(&page, error);
    if (status != HR_OK) {
        return status;
    }
    size_t strings = (size_t)page.trace->string_count + 1;
    page.name_of = malloc(strings * sizeof *page.name_of);
    page.names = malloc(strings * sizeof *page.names);
    if (page.name_of == NULL || page.names == NULL) {
        status = hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for the report", page.trace->path);
        goto free_names;
    }
    memset(page.name_of, 0xff, strings * sizeof *page.name_of);
    write_page(&page);
    if (ferror(out) != 0) {
        status = hr_fail(error, HR_E_IO, "the HTML report could not be written");
    }
free_names:
    free(page.names);
    free(page.name_of);
    return status;
}

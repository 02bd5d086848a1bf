/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/json.h"

#include "trace/render/json_text.h"

#include <inttypes.h>

/* Milliseconds with the nanoseconds behind the point: nothing is lost on the way. */
static void ms(FILE *out, const char *key, int64_t ns)
{
    fprintf(out, "\"%s\":%s%" PRId64 ".%06" PRId64, key, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000000,
            (ns < 0 ? -ns : ns) % 1000000);
}

static void text(FILE *out, const char *key, const char *value)
{
    fprintf(out, "\"%s\":", key);
    hr_json_text(out, value);
}

static void put_trace(const hr_report *report, FILE *out)
{
    const hr_trace *trace = report->trace;
    uint64_t kernels = 0;
    uint64_t copies = 0;
    for (uint32_t d = 0; d < report->device_count; d++) {
        kernels += report->devices[d].usage.kernels;
        copies += report->devices[d].usage.copies;
    }
    fputs("{\"trace\":{", out);
    text(out, "path", trace->path);
    fprintf(out, ",\"format\":\"%s\",\"gpus\":%u,", hr_trace_format_name(trace->format),
            report->device_count);
    ms(out, "span_ms", report->span_ns);
    fprintf(out, ",\"kernels\":%" PRIu64 ",\"copies\":%" PRIu64 ",\"calls\":%u", kernels, copies,
            trace->call_count);
    if (trace->duplicates != 0)
        fprintf(out, ",\"duplicates\":%u", trace->duplicates);
    if (trace->missing[0] != '\0') {
        fputc(',', out);
        text(out, "missing", trace->missing);
    }
    fputs("},\n", out);
}

static void put_direction(FILE *out, const char *key, uint64_t bytes, int64_t ns)
{
    fprintf(out, "\"%s\":{\"bytes\":%" PRIu64 ",", key, bytes);
    ms(out, "ms", ns);
    if (ns > 0)
        fprintf(out, ",\"gbps\":%.3f", (double)bytes / (double)ns);
    fputc('}', out);
}

static void put_gpu(const hr_report *report, const hr_report_device *device, FILE *out)
{
    const hr_trace_device *about = &report->trace->devices[device->device];
    const hr_trace_usage *usage = &device->usage;
    fprintf(out, "{\"id\":%" PRIu64 ",", about->id);
    text(out, "name", hr_trace_text(report->trace, about->name));
    const struct {
        const char *key;
        int64_t ns;
    } times[] = {{"span_ms", usage->span_ns}, {"kernel_ms", usage->kernel_ns},   {"copy_ms", usage->copy_ns},
                 {"fill_ms", usage->fill_ns}, {"overlap_ms", usage->overlap_ns}, {"idle_ms", usage->idle_ns}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        fputc(',', out);
        ms(out, times[i].key, times[i].ns);
    }
    fputc(',', out);
    put_direction(out, "h2d", usage->h2d_bytes, usage->h2d_ns);
    fputc(',', out);
    put_direction(out, "d2h", usage->d2h_bytes, usage->d2h_ns);
    fputc('}', out);
}

static void put_where(const hr_trace *trace, const hr_where *where, FILE *out)
{
    fputc('{', out);
    text(out, "api", where->name != HR_NONE ? hr_trace_text(trace, where->name) : "");
    if (where->thread < trace->thread_count)
        fprintf(out, ",\"thread\":%" PRId64, (int64_t)trace->threads[where->thread].id);
    else
        fputs(",\"thread\":null", out);
    if (where->stream < trace->stream_count)
        fprintf(out, ",\"stream\":%" PRIu64, trace->streams[where->stream].id);
    else
        fputs(",\"stream\":null", out);
    fprintf(out, ",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 ",", where->count, where->bytes);
    ms(out, "first_ms", where->first_ns);
    fputc(',', out);
    ms(out, "blocked_ms", where->blocked_ns);
    fputc('}', out);
}

static void put_finding(const hr_report *report, const hr_finding *finding, FILE *out)
{
    static const char *const kinds[] = {"defect", "information", "suspended"};
    fputc('{', out);
    text(out, "rule", finding->rule);
    fprintf(out, ",\"kind\":\"%s\",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 ",", kinds[finding->kind],
            finding->count, finding->bytes);
    if (finding->device < report->trace->device_count)
        fprintf(out, "\"gpu\":%" PRIu64 ",", report->trace->devices[finding->device].id);
    ms(out, "blocked_ms", finding->blocked_ns);
    fputc(',', out);
    ms(out, "cost_ms", finding->cost_ns);
    fputc(',', out);
    ms(out, "after_ms", finding->after_ns);
    if (finding->together_ns > 0) {
        fputc(',', out);
        ms(out, "together_ms", finding->together_ns);
    }
    if (finding->most_ns > 0) {
        fputc(',', out);
        ms(out, "at_most_ms", finding->most_ns);
    }
    fprintf(out, ",\"masked\":%s,\n   \"where\":[", finding->masked ? "true" : "false");
    for (uint32_t i = 0; i < finding->where_count; i++) {
        if (i != 0)
            fputc(',', out);
        put_where(report->trace, &finding->where[i], out);
    }
    fputs("],\n   ", out);
    text(out, "evidence", finding->text);
    fputs(",\n   ", out);
    text(out, "fix", finding->fix);
    fputs(",\n   ", out);
    text(out, "proof", finding->proof);
    fputc('}', out);
}

static void put_prediction(const hr_report *report, FILE *out)
{
    fputc(' ', out);
    ms(out, "all_fixed_ms", report->all_fixed_ns);
    fputs(",\n \"bound\":{", out);
    text(out, "resource", report->bound != NULL ? report->bound : "");
    fputc(',', out);
    ms(out, "ms", report->bound_ns);
    fputs("},\n \"replay\":{", out);
    ms(out, "span_ms", report->replayed_ns);
    double error = report->span_ns > 0
                       ? 100.0 * (double)(report->replayed_ns - report->span_ns) / (double)report->span_ns
                       : 0.0;
    fprintf(out, ",\"error_pct\":%.3f,", error);
    ms(out, "unexplained_ms", report->unexplained_ns);
    fprintf(out, ",\"guessed_waits\":%u,\"contradictions\":%u", report->guessed, report->contradictions);
    fprintf(out, "},\n \"link\":{\"h2d_gbps\":%.3f,\"d2h_gbps\":%.3f,", report->link_h2d_gbps,
            report->link_d2h_gbps);
    text(out, "source", report->link_source != NULL ? report->link_source : "");
    fputs("},\n", out);
}

hr_status hr_render_json(const hr_report *report, FILE *out, hr_error *error)
{
    static const char *const verdicts[] = {"found", "clean", "cannot-tell"};
    (void)error;
    put_trace(report, out);
    fputs(" \"gpus\":[", out);
    for (uint32_t d = 0; d < report->device_count; d++) {
        fputs(d != 0 ? ",\n  " : "\n  ", out);
        put_gpu(report, &report->devices[d], out);
    }
    fprintf(out, "],\n \"verdict\":\"%s\",", verdicts[report->verdict]);
    if (report->verdict == HR_VERDICT_CANNOT_TELL) {
        text(out, "reason", report->reason);
        fputc(',', out);
    }
    fputs("\n \"findings\":[", out);
    for (uint32_t i = 0; i < report->findings->count; i++) {
        fputs(i != 0 ? ",\n  " : "\n  ", out);
        put_finding(report, &report->findings->at[i], out);
    }
    fprintf(out, "],\n \"hidden\":%u,\n", report->hidden_count);
    put_prediction(report, out);
    fputs(" \"cannot_tell\":[", out);
    for (uint32_t i = 0; i < report->lack_count; i++) {
        fputs(i != 0 ? ",{" : "{", out);
        text(out, "rule", report->lacks[i].rule);
        fputc(',', out);
        text(out, "lacks", report->lacks[i].needs);
        fputc('}', out);
    }
    fputs("]}\n", out);
    return HR_OK;
}

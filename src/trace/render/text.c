/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/text.h"

#include "trace/render/timeline.h"
#include "trace/render/utf8.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMNS = 100 };

static const char *time_text(int64_t ns, char text[24])
{
    double value = (double)ns;
    if (ns >= INT64_C(10000000000))
        snprintf(text, 24, "%.1f s", value / 1e9);
    else if (ns >= INT64_C(1000000000))
        snprintf(text, 24, "%.2f s", value / 1e9);
    else if (ns >= INT64_C(100000000))
        snprintf(text, 24, "%.0f ms", value / 1e6);
    else if (ns >= INT64_C(1000000))
        snprintf(text, 24, "%.1f ms", value / 1e6);
    else
        snprintf(text, 24, "%.1f µs", value / 1e3);
    return text;
}

/* The end of the first `columns` characters of `bytes` bytes; a byte that is no character counts as one. */
static size_t within(const char *word, size_t bytes, size_t columns)
{
    size_t at = 0;
    for (size_t i = 0; i < columns && at < bytes; i++) {
        size_t length = hr_utf8_length(word + at);
        at += length != 0 ? length : 1;
    }
    return at < bytes ? at : bytes;
}

/* Columns that a word takes, a character each. */
static size_t columns_of(const char *word, size_t bytes)
{
    size_t columns = 0;
    for (size_t at = 0; at < bytes; columns++)
        at += within(word + at, bytes - at, 1);
    return columns;
}

/* A name may hold anything: what a terminal would obey, or is no character, becomes a question mark. */
static void put_plain(FILE *out, const char *word, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t length = hr_utf8_length(word + at);
        if (length == 0 || hr_utf8_acts(word + at, length))
            fputc('?', out);
        else
            fwrite(word + at, 1, length, out);
        at += length != 0 ? length : 1;
    }
}

/* Words, broken at COLUMNS, each line behind `indent` blanks; the first line's have been written already. A word that is
 * longer than a line is broken too. */
static void put_wrapped(FILE *out, const char *text, size_t indent)
{
    size_t at = indent;
    for (const char *word = text; *word != '\0';) {
        size_t bytes = strcspn(word, " \n");
        size_t columns = columns_of(word, bytes);
        if (at > indent && at + 1 + columns > COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        while (columns > COLUMNS - indent) {
            size_t part = within(word, bytes, COLUMNS - indent);
            put_plain(out, word, part);
            fprintf(out, "\n%*s", (int)indent, "");
            word += part;
            bytes -= part;
            columns -= COLUMNS - indent;
        }
        put_plain(out, word, bytes);
        at += columns;
        word += bytes;
        word += strspn(word, " \n");
    }
    fputc('\n', out);
}

/* "copies in bind", "compute binds". */
static const char *verb(const char *bound)
{
    return strncmp(bound, "copies", 6) == 0 ? "bind" : "binds";
}

/* How much of the span the GPUs had nothing to do, in the middle of them. */
static double idle_share(const hr_report *report)
{
    double idle = 0.0;
    for (uint32_t d = 0; d < report->device_count; d++) {
        const hr_trace_usage *usage = &report->devices[d].usage;
        idle += usage->span_ns > 0 ? (double)usage->idle_ns / (double)usage->span_ns : 0.0;
    }
    return report->device_count != 0 ? idle / report->device_count : 0.0;
}

/* Nothing to fix, which still leaves three things to say: there is a bound, the host is late, or all is well.
 */
static void clean_headline(const hr_report *report, char *line, size_t room)
{
    char now[24], bound[24];
    int64_t most = 0;
    int64_t later = 0;
    for (uint32_t i = 0; i < report->findings->count; i++) {
        const hr_finding *finding = &report->findings->at[i];
        int64_t *of = finding->repair.kind == HR_REPAIR_READ_LATER ? &later : &most;
        *of = finding->most_ns > *of ? finding->most_ns : *of;
    }
    time_text(report->span_ns, now);
    time_text(report->bound_ns, bound);
    double idle = 100.0 * idle_share(report);
    if (later > most)
        snprintf(line, room,
                 "This run takes %s. The host waits for results before it submits more: to look at them a "
                 "step later, where the "
                 "program can, gains at most %.0f %% of it.",
                 now, 100.0 * (double)later / (double)report->span_ns);
    else if (idle >= 25.0 && report->trace->format == HR_FORMAT_HEADRACE)
        snprintf(line, room,
                 "This run takes %s. No copy and no wait holds it up; the device has nothing to do for %.0f "
                 "%% of it, and "
                 "busiest is %s (%s).",
                 now, idle, report->bound, bound);
    else if (idle >= 25.0)
        snprintf(line, room,
                 "This run takes %s. No copy and no wait holds it up: for %.0f %% of it the GPU has nothing "
                 "to do, because the "
                 "host does not keep up.",
                 now, idle);
    else if (most > 0)
        snprintf(
            line, room,
            "This run takes %s, and overlapping copies with kernels gains at most %.1f %% of it: %s %s (%s).",
            now, 100.0 * (double)most / (double)report->span_ns, report->bound, verb(report->bound), bound);
    else
        snprintf(line, room, "This run takes %s, and nothing that headrace knows of holds it up: %s %s (%s).",
                 now, report->bound, verb(report->bound), bound);
}

/* Is there a defect that is about the data, not about time? Those have no repair that could be replayed. */
static bool endangers_data(const hr_report *report)
{
    bool found = false;
    for (uint32_t i = 0; i < report->findings->count; i++) {
        const hr_finding *finding = &report->findings->at[i];
        found |= finding->kind == HR_FINDING_DEFECT && finding->repair.count == 0;
    }
    return found;
}

static void put_headline(const hr_report *report, FILE *out)
{
    char now[24], then[24], bound[24], line[512];
    time_text(report->span_ns, now);
    time_text(report->all_fixed_ns, then);
    time_text(report->bound_ns, bound);
    double gain = report->span_ns > 0
                      ? 100.0 * (double)(report->span_ns - report->all_fixed_ns) / (double)report->span_ns
                      : 0.0;
    if (report->verdict == HR_VERDICT_CANNOT_TELL)
        snprintf(line, sizeof line, "This run takes %s. Cannot tell what holds it: %.150s.", now,
                 report->reason);
    else if (report->verdict == HR_VERDICT_CLEAN)
        clean_headline(report, line, sizeof line);
    else if (gain < 0.5 && endangers_data(report))
        snprintf(
            line, sizeof line,
            "This run takes %s, bound by %s (%s). What was found is about right results, not about time.",
            now, report->bound, bound);
    else
        snprintf(line, sizeof line, "This run takes %s; it could take %s (%.*f %% less). Then %s %s (%s).",
                 now, then, gain < 0.95 ? 1 : 0, gain, report->bound, verb(report->bound), bound);
    put_wrapped(out, line, 0);
}

static void put_device(const hr_report *report, const hr_report_device *device, FILE *out)
{
    const hr_trace_device *about = &report->trace->devices[device->device];
    const hr_trace_usage *usage = &device->usage;
    char kernels[24], copies[24], overlap[24], idle[24], line[256];
    snprintf(line, sizeof line,
             "GPU %" PRIu64 " %s%skernels %s, copies %s, of which %s overlap; idle %s (%.0f %%)", about->id,
             hr_trace_text(report->trace, about->name), about->name != HR_NONE ? ": " : "",
             time_text(usage->kernel_ns, kernels), time_text(usage->copy_ns, copies),
             time_text(usage->overlap_ns, overlap), time_text(usage->idle_ns, idle),
             usage->span_ns > 0 ? 100.0 * (double)usage->idle_ns / (double)usage->span_ns : 0.0);
    put_wrapped(out, line, 0);
}

static void put_place(const hr_report *report, const hr_finding *finding, FILE *out)
{
    const hr_trace *trace = report->trace;
    if (finding->where_count == 0)
        return;
    const hr_where *where = &finding->where[0];
    char first[24], line[256];
    size_t at = 0;
    if (where->name != HR_NONE)
        at += (size_t)snprintf(line + at, sizeof line - at, "%.60s, ", hr_trace_text(trace, where->name));
    if (where->thread < trace->thread_count)
        at += (size_t)snprintf(line + at, sizeof line - at, "thread %" PRId64 ", ",
                               (int64_t)trace->threads[where->thread].id);
    if (where->stream < trace->stream_count)
        at += (size_t)snprintf(line + at, sizeof line - at, "stream %" PRIu64 ", ",
                               trace->streams[where->stream].id);
    snprintf(line + at, sizeof line - at, "%" PRIu64 " times, first at %s%s", where->count,
             time_text(where->first_ns, first), finding->where_count > 1 ? "; and other places" : "");
    fputs("     where  ", out);
    put_wrapped(out, line, 12);
}

static void put_gain(const hr_report *report, const hr_finding *finding, FILE *out)
{
    char cost[24], after[24], line[256];
    time_text(finding->together_ns != 0 ? finding->together_ns : finding->cost_ns, cost);
    time_text(finding->after_ns, after);
    if (finding->masked)
        snprintf(line, sizeof line, "nothing alone: other findings hide it; with them fixed too, %s", cost);
    else if (finding->together_ns > 0)
        snprintf(
            line, sizeof line,
            "%s, as other findings gain only with this one; fixed alone, the run takes %s (%.1f %% less)",
            cost, after, 100.0 * (double)(report->span_ns - finding->after_ns) / (double)report->span_ns);
    else
        snprintf(line, sizeof line, "%s of the run; fixed alone, it takes %s (%.1f %% less)", cost, after,
                 100.0 * (double)(report->span_ns - finding->after_ns) / (double)report->span_ns);
    fputs("     gains  ", out);
    put_wrapped(out, line, 12);
}

static void put_finding(const hr_report *report, uint32_t index, FILE *out)
{
    static const char *const kinds[] = {"", " (for information)", " (verdicts rest)"};
    const hr_finding *finding = &report->findings->at[index];
    fprintf(out, "\n%3u. %s%s", index + 1, finding->rule, kinds[finding->kind]);
    if (report->device_count > 1 && finding->device < report->trace->device_count)
        fprintf(out, ", GPU %" PRIu64, report->trace->devices[finding->device].id);
    fputs("\n     ", out);
    put_wrapped(out, finding->text, 5);
    put_place(report, finding, out);
    if (finding->kind == HR_FINDING_DEFECT && finding->repair.count != 0)
        put_gain(report, finding, out);
    if (finding->fix[0] != '\0') {
        fputs("     fix    ", out);
        put_wrapped(out, finding->fix, 12);
    }
    if (finding->proof[0] != '\0') {
        fputs(finding->kind == HR_FINDING_DEFECT ? "     check  " : "     note   ", out);
        put_wrapped(out, finding->proof, 12);
    }
}

static void put_footnotes(const hr_report *report, FILE *out)
{
    char line[512];
    double error = report->span_ns > 0
                       ? 100.0 * (double)(report->replayed_ns - report->span_ns) / (double)report->span_ns
                       : 0.0;
    snprintf(line, sizeof line,
             "Replayed unchanged, the run is off by %.1f %%. Link: %.1f GB/s in, %.1f out (%s).", error,
             report->link_h2d_gbps, report->link_d2h_gbps, report->link_source);
    fputc('\n', out);
    put_wrapped(out, line, 0);
    if (report->guessed != 0) {
        snprintf(line, sizeof line,
                 "%u waits of streams do not say for which event they are: the latest that fits was taken, "
                 "so that more may be gained "
                 "than this says.",
                 report->guessed);
        put_wrapped(out, line, 0);
    }
    if (report->contradictions != 0) {
        snprintf(line, sizeof line,
                 "%u times this trace says of two events that each came before the other: predictions leave "
                 "such an order out, "
                 "and are less sure for it.",
                 report->contradictions);
        put_wrapped(out, line, 0);
    }
    if (report->hidden_count != 0)
        fprintf(out, "%u more cost under %g %% each (--min-cost 0 shows them).\n", report->hidden_count,
                report->min_cost_pct);
    if (report->trace->duplicates != 0)
        fprintf(out, "%u records of this file are there twice, and count once.\n", report->trace->duplicates);
    if (report->trace->missing[0] != '\0') {
        snprintf(line, sizeof line, "This file lacks: %s.", report->trace->missing);
        put_wrapped(out, line, 0);
    }
    size_t at = 0;
    for (uint32_t i = 0; i < report->lack_count && at < sizeof line - 64; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%s",
                               i != 0 ? ", " : "Cannot tell from this trace: ", report->lacks[i].rule);
    if (at != 0)
        put_wrapped(out, line, 0);
}

hr_status hr_render_text(const hr_report *report, FILE *out, hr_error *error)
{
    put_headline(report, out);
    for (uint32_t d = 0; d < report->device_count; d++)
        put_device(report, &report->devices[d], out);
    for (uint32_t i = 0; i < report->findings->count; i++)
        put_finding(report, i, out);
    hr_status status = hr_render_timeline(report, out, error);
    if (status == HR_OK)
        put_footnotes(report, out);
    return status;
}

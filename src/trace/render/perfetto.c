/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/perfetto.h"

#include "trace/render/json_text.h"

#include <inttypes.h>

/* Track groups that are not the recorder's own: far above any process number. */
enum { FINDINGS_PID = 1000000000, FIXED_PID = 1000000001, GPU_PID = 1000000100 };

typedef struct hr_perfetto {
    const hr_report *report;
    FILE *out;
    bool any;
} hr_perfetto;

static void begin_event(hr_perfetto *to)
{
    fputs(to->any ? ",\n{" : "\n{", to->out);
    to->any = true;
}

static void put_name(hr_perfetto *to, const char *what, uint64_t pid, uint64_t tid, const char *name)
{
    begin_event(to);
    fprintf(to->out,
            "\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"args\":{\"name\":", what,
            pid, tid);
    hr_json_text(to->out, name);
    fputs("}}", to->out);
}

static void put_span(hr_perfetto *to, const char *category, const char *name, uint64_t pid, uint64_t tid,
                     int64_t begin_ns, int64_t end_ns)
{
    int64_t length = end_ns > begin_ns ? end_ns - begin_ns : 0;
    begin_event(to);
    fprintf(to->out, "\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
    hr_json_text(to->out, name);
    fprintf(to->out,
            ",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"ts\":%" PRId64 ".%03" PRId64 ",\"dur\":%" PRId64
            ".%03" PRId64,
            pid, tid, begin_ns / 1000, begin_ns % 1000, length / 1000, length % 1000);
}

static const char *category_of(const hr_event *event)
{
    return event->kind == HR_EVENT_KERNEL ? "kernel"
           : event->kind == HR_EVENT_COPY ? "gpu_memcpy"
                                          : "gpu_memset";
}

/* A copy's name with its memory kinds, as this library's own reader takes it. */
static const char *work_name(const hr_trace *trace, const hr_event *event, char *text, size_t room)
{
    static const char *const kinds[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed"};
    const char *name = hr_trace_text(trace, event->name);
    bool named = false;
    for (const char *at = name; *at != '\0'; at++)
        named |= *at == '(';
    if (event->kind != HR_EVENT_COPY || named || (event->source == 0 && event->sink == 0))
        return name;
    snprintf(text, room, "%s (%s -> %s)", name, kinds[event->source], kinds[event->sink]);
    return text;
}

/* The stream as this library's reader takes it; without process and context two streams of one number would be one. */
static void put_stream(hr_perfetto *to, const hr_event *event)
{
    const hr_trace *trace = to->report->trace;
    if (event->stream >= trace->stream_count || event->device >= trace->device_count)
        return;
    const hr_trace_stream *stream = &trace->streams[event->stream];
    fprintf(to->out, ",\"device\":%" PRIu64 ",\"stream\":%" PRIu64, trace->devices[event->device].id,
            stream->id);
    if (stream->context != 0)
        fprintf(to->out, ",\"context\":%" PRIu64, stream->context);
    if (stream->process < trace->process_count)
        fprintf(to->out, ",\"host_process\":%" PRIu64, trace->processes[stream->process].id);
}

static void put_number(hr_perfetto *to, const char *key, uint64_t number)
{
    if (number != 0)
        fprintf(to->out, ",\"%s\":%" PRIu64, key, number);
}

static const char *direction_name(uint8_t direction)
{
    static const char *const names[] = {"",     "HtoD", "DtoH",         "DtoD",
                                        "PtoP", "HtoH", "Unified HtoD", "Unified DtoH"};
    return direction < sizeof names / sizeof names[0] ? names[direction] : "";
}

static void put_work(hr_perfetto *to, const hr_event *event)
{
    const hr_trace *trace = to->report->trace;
    char text[128];
    uint64_t device = event->device < trace->device_count ? trace->devices[event->device].id : 0;
    uint64_t stream = event->stream < trace->stream_count ? trace->streams[event->stream].id : 0;
    put_span(to, category_of(event), work_name(trace, event, text, sizeof text), GPU_PID + device, stream,
             event->begin_ns, event->end_ns);
    fprintf(to->out, ",\"args\":{\"correlation\":%" PRIu64, event->correlation);
    put_stream(to, event);
    put_number(to, "bytes", event->bytes);
    put_number(to, "source_address", event->source_address);
    put_number(to, "sink_address", event->sink_address);
    if (event->kind == HR_EVENT_COPY)
        fprintf(to->out, ",\"kind\":\"%s\"", direction_name(event->direction));
    fputs("}}", to->out);
}

static void put_call(hr_perfetto *to, const hr_event *event, bool marker)
{
    const hr_trace *trace = to->report->trace;
    uint64_t pid = event->process < trace->process_count ? trace->processes[event->process].id : 0;
    uint64_t tid = event->thread < trace->thread_count ? trace->threads[event->thread].id : 0;
    put_span(to,
             marker ? to->report->trace->format == HR_FORMAT_HEADRACE ? "headrace_stage" : "user_annotation"
                    : "cuda_runtime",
             hr_trace_text(trace, event->name), pid, tid, event->begin_ns, event->end_ns);
    fprintf(to->out, ",\"args\":{\"correlation\":%" PRIu64, event->correlation);
    if (!marker)
        put_stream(to, event);
    put_number(to, "bytes", event->bytes);
    put_number(to, "event_id", event->object);
    put_number(to, "wait_on_cuda_event_record_corr_id", event->waits_for);
    fputs("}}", to->out);
}

static void put_events(hr_perfetto *to)
{
    const hr_report *report = to->report;
    const hr_trace *trace = report->trace;
    for (uint32_t d = 0; d < report->device_count; d++) {
        const hr_trace_device *device = &trace->devices[report->devices[d].device];
        put_name(to, "process_name", GPU_PID + device->id, 0, hr_trace_text(trace, device->name));
    }
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const hr_event *event = &trace->events[i];
        if (hr_event_is_work(event))
            put_work(to, event);
        else if (event->kind == HR_EVENT_CALL || event->kind == HR_EVENT_MARKER)
            put_call(to, event, event->kind == HR_EVENT_MARKER);
    }
}

/* Behind the work, as the recorder writes them: a reader knows the streams by then. */
static void put_stream_flags(hr_perfetto *to)
{
    static const char *const flags[] = {"", "blocking", "non-blocking", "null", "per-thread"};
    const hr_trace *trace = to->report->trace;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        const hr_trace_stream *stream = &trace->streams[s];
        if (stream->flag == HR_STREAM_FLAG_UNKNOWN)
            continue;
        begin_event(to);
        fprintf(to->out,
                "\"ph\":\"M\",\"name\":\"stream_flag\",\"pid\":0,\"args\":{\"context\":%" PRIu64
                ",\"stream\":%" PRIu64,
                stream->context, stream->id);
        if (stream->process < trace->process_count)
            fprintf(to->out, ",\"host_process\":%" PRIu64, trace->processes[stream->process].id);
        fprintf(to->out, ",\"kind\":\"%s\"}}", flags[stream->flag]);
    }
}

static void put_host_names(hr_perfetto *to)
{
    const hr_trace *trace = to->report->trace;
    for (uint32_t p = 0; p < trace->process_count; p++) {
        if (trace->processes[p].name != HR_NONE)
            put_name(to, "process_name", trace->processes[p].id, 0,
                     hr_trace_text(trace, trace->processes[p].name));
    }
    for (uint32_t t = 0; t < trace->thread_count; t++) {
        const hr_trace_thread *thread = &trace->threads[t];
        if (thread->name != HR_NONE && thread->process < trace->process_count)
            put_name(to, "thread_name", trace->processes[thread->process].id, thread->id,
                     hr_trace_text(trace, thread->name));
    }
}

/* What the trace was, and what is known of its devices: the audit of this file is to say what the audit of that one says. */
static void put_head(hr_perfetto *to)
{
    const hr_trace *trace = to->report->trace;
    fprintf(to->out, "{\"audited\":\"%s\",%s%s", hr_trace_format_name(trace->format),
            trace->pytorch ? "\"pytorch\":true," : "", trace->serialised ? "\"launch_blocking\":true," : "");
    if (trace->lost_records != 0)
        fprintf(to->out, "\"lost\":%" PRIu32 ",", trace->lost_records);
    if (trace->missing[0] != '\0') {
        fputs("\"auditMissing\":", to->out);
        hr_json_text(to->out, trace->missing);
        fputc(',', to->out);
    }
    fputs("\"deviceProperties\":[", to->out);
    for (uint32_t d = 0; d < trace->device_count; d++) {
        const hr_trace_device *device = &trace->devices[d];
        fprintf(to->out, "%s{\"id\":%" PRIu64 ",\"name\":", d != 0 ? "," : "", device->id);
        hr_json_text(to->out, hr_trace_text(trace, device->name));
        fprintf(to->out, ",\"numSms\":%" PRIu32 ",\"computeMajor\":%" PRIu32 ",\"computeMinor\":%" PRIu32 "}",
                device->multiprocessors, device->compute_major, device->compute_minor);
    }
    fputs("],\n\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to->out);
}

static void put_finding(hr_perfetto *to, uint32_t index)
{
    const hr_trace *trace = to->report->trace;
    const hr_finding *finding = &to->report->findings->at[index];
    const uint32_t *events = finding->evidence_count != 0 ? finding->evidence : finding->repair.events;
    uint32_t count = finding->evidence_count != 0 ? finding->evidence_count : finding->repair.count;
    put_name(to, "thread_name", FINDINGS_PID, index + 1, finding->rule);
    for (uint32_t i = 0; i < count; i++) {
        const hr_event *event = &trace->events[events[i]];
        put_span(to, "finding", finding->rule, FINDINGS_PID, index + 1, event->begin_ns, event->end_ns);
        fputs(",\"args\":{\"fix\":", to->out);
        hr_json_text(to->out, finding->fix);
        fputs("}}", to->out);
    }
}

static void put_fixed(hr_perfetto *to)
{
    const hr_report *report = to->report;
    const hr_trace *trace = report->trace;
    if (report->fixed_begin_ns == NULL || report->all_fixed_ns >= report->span_ns)
        return;
    put_name(to, "process_name", FIXED_PID, 0, "predicted, with every finding fixed");
    for (uint32_t i = 0; i < trace->work_count; i++) {
        uint32_t index = trace->work[i];
        const hr_event *event = &trace->events[index];
        char text[128];
        if (report->fixed_begin_ns[index] < 0)
            continue;
        /* One track a kind: repaired copies have streams that today's trace has no number for. */
        uint64_t track = event->kind == HR_EVENT_KERNEL ? 1 : 2 + (uint64_t)event->direction;
        put_span(to, "predicted", work_name(trace, event, text, sizeof text), FIXED_PID, track,
                 report->fixed_begin_ns[index], report->fixed_end_ns[index]);
        fputc('}', to->out);
    }
}

hr_status hr_render_perfetto(const hr_report *report, FILE *out, hr_error *error)
{
    hr_perfetto to = {report, out, false};
    (void)error;
    put_head(&to);
    put_host_names(&to);
    put_events(&to);
    put_stream_flags(&to);
    put_name(&to, "process_name", FINDINGS_PID, 0, "headrace findings");
    for (uint32_t i = 0; i < report->findings->count; i++)
        put_finding(&to, i);
    put_fixed(&to);
    fputs("\n]}\n", out);
    return HR_OK;
}

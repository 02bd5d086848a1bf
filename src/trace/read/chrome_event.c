/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/chrome_event.h"

#include "trace/read/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Categories, old spellings and new. What stands here as skipped is passed over without a look at its
 * arguments. */
#define CATEGORY(name, kind)         \
    {                                \
        name, sizeof(name) - 1, kind \
    }
static const struct {
    const char *name;
    size_t length;
    uint8_t kind;
} categories[] = {
    CATEGORY("kernel", HR_EVENT_KERNEL),
    CATEGORY("gpu_memcpy", HR_EVENT_COPY),
    CATEGORY("memcpy", HR_EVENT_COPY),
    CATEGORY("gpu_memset", HR_EVENT_FILL),
    CATEGORY("memset", HR_EVENT_FILL),
    CATEGORY("cuda_runtime", HR_EVENT_CALL),
    CATEGORY("cuda_driver", HR_EVENT_CALL),
    CATEGORY("hip_runtime", HR_EVENT_CALL),
    CATEGORY("runtime", HR_EVENT_CALL),
    CATEGORY("driver", HR_EVENT_CALL),
    CATEGORY("cuda_sync", HR_EVENT_SYNC),
    CATEGORY("user_annotation", HR_EVENT_MARKER),
    CATEGORY("headrace_stage", HR_EVENT_MARKER),
    CATEGORY("nvtx", HR_EVENT_MARKER),
    CATEGORY("cpu_op", HR_CHROME_SKIPPED),
    CATEGORY("operator", HR_CHROME_SKIPPED),
    CATEGORY("python_function", HR_CHROME_SKIPPED),
    CATEGORY("cpu_instant_event", HR_CHROME_SKIPPED),
    CATEGORY("ac2g", HR_CHROME_SKIPPED),
    CATEGORY("async_cpu_to_gpu", HR_CHROME_SKIPPED),
    CATEGORY("async_gpu", HR_CHROME_SKIPPED),
    CATEGORY("fwdbwd", HR_CHROME_SKIPPED),
    CATEGORY("gpu_user_annotation", HR_CHROME_SKIPPED),
    CATEGORY("overhead", HR_CHROME_SKIPPED),
    CATEGORY("finding", HR_CHROME_SKIPPED), /* what --perfetto adds */
    CATEGORY("predicted", HR_CHROME_SKIPPED),
    CATEGORY("trace", HR_CHROME_SKIPPED),
};

static uint8_t kind_of_category(const hr_json_text *category)
{
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        if (category->length == categories[i].length &&
            strncasecmp(category->at, categories[i].name, category->length) == 0)
            return categories[i].kind;
    }
    return HR_CHROME_UNKNOWN;
}

/* A key in lower case and without what spellings differ in: "Stream Id", "stream_id" and "streamId" are one.
 */
static size_t plain_key(const hr_json_text *key, char *out, size_t room)
{
    size_t length = 0;
    for (size_t i = 0; i < key->length && length + 1 < room; i++) {
        if (isalnum((unsigned char)key->at[i]))
            out[length++] = (char)tolower((unsigned char)key->at[i]);
    }
    out[length] = '\0';
    return length;
}

static void take_arg(void *user, const hr_json_text *key, const hr_json_text *value)
{
    hr_chrome_args *args = user;
    char plain[48];
    size_t length = plain_key(key, plain, sizeof plain);
    struct {
        const char *name;
        uint64_t *into;
        bool *has;
    } numbers[] = {
        {"correlation", &args->correlation, NULL},
        {"correlationid", &args->correlation, NULL},
        {"stream", &args->stream, &args->has_stream},
        {"streamid", &args->stream, &args->has_stream},
        {"device", &args->device, &args->has_device},
        {"deviceid", &args->device, &args->has_device},
        {"gpu", &args->device, &args->has_device},
        {"context", &args->context, NULL},
        {"contextid", &args->context, NULL},
        {"bytes", &args->bytes, NULL},
        {"numbytes", &args->bytes, NULL},
        {"size", &args->bytes, NULL},
        {"sizebytes", &args->bytes, NULL},
        {"eventid", &args->event_id, NULL},
        {"waitoncudaeventid", &args->event_id, NULL},
        {"waitoncudaeventrecordcorrid", &args->waits_for, NULL},
        {"sourceaddress", &args->source_address, NULL},
        {"sinkaddress", &args->sink_address, NULL},
        {"hostprocess", &args->process, &args->has_process},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(plain, numbers[i].name) != 0)
            continue;
        uint64_t number;
        if (hr_json_whole(value, &number)) {
            *numbers[i].into = number;
            if (numbers[i].has != NULL)
                *numbers[i].has = true;
        }
        return;
    }
    if (strcmp(plain, "name") == 0)
        args->name = *value;
    else if (length == 4 && strcmp(plain, "kind") == 0)
        args->kind = *value;
    else if (strcmp(plain, "cudasynckind") == 0)
        args->sync_kind = *value;
}

static bool scan_args(hr_json *json, hr_chrome_args *args)
{
    hr_json_space(json);
    return *json->at == '{' ? hr_json_object(json, take_arg, args) : hr_json_skip(json);
}

/* Which field of the event a key names; null when none. */
static hr_json_text *field_of(hr_chrome *chrome, const hr_json_text *key)
{
    switch (key->length) {
    case 2:
        return hr_json_is(key, "ts") ? &chrome->begin : hr_json_is(key, "id") ? &chrome->id : NULL;
    case 3:
        return hr_json_is(key, "cat")   ? &chrome->category
               : hr_json_is(key, "pid") ? &chrome->pid
               : hr_json_is(key, "tid") ? &chrome->tid
               : hr_json_is(key, "dur") ? &chrome->duration
                                        : NULL;
    case 4:
        return hr_json_is(key, "name") ? &chrome->name : NULL;
    default:
        return NULL;
    }
}

static bool scan_member(hr_json *json, hr_chrome *chrome, const hr_json_text *key)
{
    hr_json_text value;
    hr_json_text *field = field_of(chrome, key);
    if (field != NULL) {
        if (!hr_json_scalar(json, field))
            return false;
        if (field == &chrome->category)
            chrome->kind = kind_of_category(field);
        return true;
    }
    if (hr_json_is(key, "ph")) {
        if (!hr_json_string(json, &value))
            return false;
        chrome->phase = value.length == 1 ? *value.at : '\0';
        return true;
    }
    if (hr_json_is(key, "args"))
        return scan_args(json, &chrome->args);
    return hr_json_skip(json);
}

bool hr_chrome_scan(hr_json *json, hr_chrome *chrome)
{
    chrome->phase = '\0';
    chrome->kind = HR_CHROME_UNKNOWN;
    chrome->category = chrome->name = chrome->id = (hr_json_text){0};
    chrome->pid = chrome->tid = chrome->begin = chrome->duration = (hr_json_text){0};
    chrome->args = (hr_chrome_args){0};
    if (!hr_json_take(json, '{'))
        return false;
    for (;;) {
        hr_json_text key;
        if (hr_json_take(json, '}'))
            return true;
        hr_json_take(json, ',');
        if (!hr_json_string(json, &key) || !hr_json_take(json, ':') || !scan_member(json, chrome, &key))
            return false;
        /* Ranges must be followed to their end even where nobody wants them, so that nesting stays right. */
        if (chrome->kind == HR_CHROME_SKIPPED && chrome->phase != '\0' && chrome->phase != 'B' &&
            chrome->phase != 'E')
            return hr_json_skip_rest(json);
    }
}

/* A number, or a name that stands for one. */
static uint64_t identifier(const hr_json_text *text)
{
    uint64_t number;
    if (hr_json_whole(text, &number))
        return number;
    number = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < text->length; i++)
        number = (number ^ (unsigned char)text->at[i]) * UINT64_C(0x100000001B3);
    return number;
}

static uint32_t intern(hr_trace *trace, const hr_json_text *text)
{
    if (!text->escaped)
        return hr_trace_string(trace, text->at, text->length);
    char *plain = malloc(text->length + 1);
    if (plain == NULL)
        return HR_NONE;
    size_t length = hr_json_unescape(text, plain, text->length + 1);
    uint32_t string = hr_trace_string(trace, plain, strnlen(plain, length));
    free(plain);
    return string;
}

/* Headrace's recorder: {"ph":"M","name":"device_name","args":{"device":…,"name":…}}. */
static bool keep_device_name(hr_chrome *chrome)
{
    hr_trace *trace = chrome->trace;
    uint32_t name = intern(trace, &chrome->args.name);
    uint32_t device = hr_trace_device_of(trace, chrome->args.device);
    if (name == HR_NONE || device == HR_NONE)
        return false;
    trace->devices[device].name = name;
    return true;
}

/* {"ph":"M","name":"stream_flag","args":{"context":…,"stream":…,"kind":…}}, behind the stream's work. */
static void keep_stream_flag(hr_chrome *chrome)
{
    static const struct {
        const char *name;
        hr_stream_flag flag;
    } flags[] = {{"blocking", HR_STREAM_FLAG_BLOCKING},
                 {"non-blocking", HR_STREAM_FLAG_NON_BLOCKING},
                 {"null", HR_STREAM_FLAG_NULL},
                 {"per-thread", HR_STREAM_FLAG_PER_THREAD}};
    const hr_chrome_args *args = &chrome->args;
    for (uint32_t s = 0; s < chrome->trace->stream_count; s++) {
        hr_trace_stream *stream = &chrome->trace->streams[s];
        if (args->has_process && (stream->process >= chrome->trace->process_count ||
                                  chrome->trace->processes[stream->process].id != args->process))
            continue;
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
            if (stream->context == args->context && stream->id == args->stream &&
                hr_json_is(&args->kind, flags[i].name))
                stream->flag = flags[i].flag;
        }
    }
}

/* Process and thread names: {"ph":"M","name":"thread_name","args":{"name":…}}. */
static bool keep_name(hr_chrome *chrome)
{
    if (hr_json_is(&chrome->name, "device_name"))
        return keep_device_name(chrome);
    if (hr_json_is(&chrome->name, "stream_flag")) {
        keep_stream_flag(chrome);
        return true;
    }
    bool process = hr_json_is(&chrome->name, "process_name");
    bool thread = hr_json_is(&chrome->name, "thread_name");
    if ((!process && !thread) || chrome->args.name.length == 0)
        return true;
    hr_trace *trace = chrome->trace;
    uint32_t name = intern(trace, &chrome->args.name);
    uint32_t owner = hr_trace_process_of(trace, identifier(&chrome->pid));
    if (name == HR_NONE || owner == HR_NONE)
        return false;
    if (process) {
        trace->processes[owner].name = name;
        return true;
    }
    uint32_t named = hr_trace_thread_of(trace, owner, identifier(&chrome->tid));
    if (named == HR_NONE)
        return false;
    trace->threads[named].name = name;
    return true;
}

/* Traces without categories are told by names and arguments. */
static uint8_t kind_of_unknown(const hr_chrome *chrome)
{
    hr_call call;
    if (chrome->name.length >= 6 && strncasecmp(chrome->name.at, "memcpy", 6) == 0)
        return HR_EVENT_COPY;
    if (chrome->name.length >= 6 && strncasecmp(chrome->name.at, "memset", 6) == 0)
        return HR_EVENT_FILL;
    if (hr_call_from_name(chrome->name.at, chrome->name.length, &call))
        return HR_EVENT_CALL;
    if (chrome->args.has_stream && chrome->args.has_device)
        return HR_EVENT_KERNEL;
    return HR_CHROME_SKIPPED;
}

/* Whose stream the arguments name; HR_NONE where they do not say. False: out of memory. */
static bool owner_of(hr_chrome *chrome, uint32_t *process)
{
    *process = HR_NONE;
    if (!chrome->args.has_process)
        return true;
    *process = hr_trace_process_of(chrome->trace, chrome->args.process);
    return *process != HR_NONE;
}

static bool place_work(hr_chrome *chrome, hr_event *event)
{
    hr_trace *trace = chrome->trace;
    const hr_chrome_args *args = &chrome->args;
    if (!owner_of(chrome, &event->process))
        return false;
    uint64_t device = args->has_device ? args->device : identifier(&chrome->pid);
    uint64_t stream = args->has_stream ? args->stream : identifier(&chrome->tid);
    event->device = hr_trace_device_of(trace, device);
    event->stream = hr_trace_stream_of(trace, event->process, event->device, args->context, stream);
    event->bytes = args->bytes;
    if (event->kind == HR_EVENT_COPY) {
        event->source_address = args->source_address;
        event->sink_address = args->sink_address;
        char words[160];
        size_t length = hr_json_unescape(&chrome->name, words, sizeof words);
        hr_words_copy(words, length, event);
        if (event->direction == HR_DIRECTION_UNKNOWN && args->kind.length != 0)
            hr_words_copy(args->kind.at, args->kind.length, event);
    }
    return event->device != HR_NONE && event->stream != HR_NONE;
}

static bool place_call(hr_chrome *chrome, hr_event *event)
{
    hr_trace *trace = chrome->trace;
    hr_call call = HR_CALL_OTHER;
    hr_call_from_name(chrome->name.at, chrome->name.length, &call);
    event->call = (uint8_t)call;
    event->object = chrome->args.event_id;
    event->waits_for = chrome->args.waits_for;
    event->bytes = chrome->args.bytes;
    if (chrome->args.has_stream && chrome->args.has_device) {
        uint32_t owner;
        if (!owner_of(chrome, &owner))
            return false;
        event->device = hr_trace_device_of(trace, chrome->args.device);
        event->stream =
            hr_trace_stream_of(trace, owner, event->device, chrome->args.context, chrome->args.stream);
        if (event->device == HR_NONE || event->stream == HR_NONE)
            return false;
    }
    event->process = hr_trace_process_of(trace, identifier(&chrome->pid));
    event->thread = hr_trace_thread_of(trace, event->process, identifier(&chrome->tid));
    trace->hip |= chrome->name.length > 3 && memcmp(chrome->name.at, "hip", 3) == 0;
    return event->process != HR_NONE && event->thread != HR_NONE;
}

/* A wait as CUPTI records it; it has the stream and event that the call's own record lacks. */
static bool place_sync(hr_chrome *chrome, hr_event *event)
{
    const hr_chrome_args *args = &chrome->args;
    event->object = args->event_id;
    event->waits_for = args->waits_for;
    /* All ones: the whole context. Kineto prints it signed or unsigned, in 32 bits. */
    if (!args->has_stream || args->stream == UINT64_MAX || args->stream == UINT32_MAX)
        return true;
    event->device = hr_trace_device_of(chrome->trace, args->device);
    event->stream = hr_trace_stream_of(chrome->trace, HR_NONE, event->device, args->context, args->stream);
    return event->device != HR_NONE && event->stream != HR_NONE;
}

static hr_status keep_event(hr_chrome *chrome, uint8_t kind, int64_t begin_ns, int64_t length_ns,
                            uint64_t offset, hr_error *error)
{
    hr_trace *trace = chrome->trace;
    uint32_t name = intern(trace, &chrome->name);
    hr_event *event = name != HR_NONE ? hr_trace_add(trace) : NULL;
    bool placed = false;
    if (event != NULL) {
        event->kind = kind;
        event->name = name;
        event->begin_ns = begin_ns;
        event->end_ns = begin_ns + length_ns;
        event->correlation = chrome->args.correlation;
        if (kind == HR_EVENT_SYNC)
            placed = place_sync(chrome, event);
        else if (kind == HR_EVENT_CALL || kind == HR_EVENT_MARKER)
            placed = place_call(chrome, event);
        else
            placed = place_work(chrome, event);
    }
    if (!placed)
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for the event at byte %llu", trace->path,
                       (unsigned long long)offset);
    return HR_OK;
}

static bool push_open(hr_chrome *chrome, uint32_t event)
{
    if (chrome->open_count == chrome->open_capacity) {
        size_t capacity = chrome->open_capacity * 2 + 64;
        hr_chrome_open *open = realloc(chrome->open, capacity * sizeof *open);
        if (open == NULL)
            return false;
        chrome->open = open;
        chrome->open_capacity = capacity;
    }
    chrome->open[chrome->open_count++] =
        (hr_chrome_open){identifier(&chrome->pid), identifier(&chrome->tid), event};
    return true;
}

static void end_range(hr_chrome *chrome, int64_t at_ns)
{
    uint64_t pid = identifier(&chrome->pid);
    uint64_t tid = identifier(&chrome->tid);
    for (size_t i = chrome->open_count; i-- > 0;) {
        if (chrome->open[i].pid != pid || chrome->open[i].tid != tid)
            continue;
        if (chrome->open[i].event != HR_NONE)
            chrome->trace->events[chrome->open[i].event].end_ns = at_ns;
        memmove(&chrome->open[i], &chrome->open[i + 1], (chrome->open_count - i - 1) * sizeof *chrome->open);
        chrome->open_count--;
        return;
    }
}

/* The largest time that leaves room for a duration on top: 146 years. */
#define TIME_LIMIT_NS (INT64_MAX / 2)

static bool time_of(const hr_json_text *text, int64_t *time_ns)
{
    return hr_json_thousandths(text, time_ns) && *time_ns<TIME_LIMIT_NS && * time_ns> - TIME_LIMIT_NS;
}

/* How much of a text a message has room for. */
static int shown(const hr_json_text *text)
{
    return text->length < 40 ? (int)text->length : 40;
}

hr_status hr_chrome_keep(hr_chrome *chrome, uint64_t offset, hr_error *error)
{
    hr_trace *trace = chrome->trace;
    if (chrome->phase == 'M')
        return keep_name(chrome) ? HR_OK : hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory", trace->path);
    if (!trace->pytorch &&
        (hr_json_is(&chrome->category, "cpu_op") || hr_json_is(&chrome->category, "Operator")))
        trace->pytorch = true;
    bool whole = chrome->phase == 'X';
    if (!whole && chrome->phase != 'B' && chrome->phase != 'E')
        return HR_OK;
    uint8_t kind = chrome->kind == HR_CHROME_UNKNOWN ? kind_of_unknown(chrome) : chrome->kind;
    if (whole && kind == HR_CHROME_SKIPPED)
        return HR_OK;
    int64_t begin_ns;
    int64_t length_ns = 0;
    if (!time_of(&chrome->begin, &begin_ns))
        return hr_fail(error, HR_E_FORMAT,
                       "%s: the event at byte %llu has the time \"ts\": %.*s, which is no number",
                       trace->path, (unsigned long long)offset, shown(&chrome->begin),
                       chrome->begin.length != 0 ? chrome->begin.at : "");
    if (chrome->phase == 'E') {
        end_range(chrome, begin_ns);
        return HR_OK;
    }
    /* A call that had not ended when the recorder stopped has no duration. */
    if (chrome->duration.length != 0 && (!time_of(&chrome->duration, &length_ns) || length_ns < 0))
        return hr_fail(error, HR_E_FORMAT, "%s: the event at byte %llu has the duration \"dur\": %.*s",
                       trace->path, (unsigned long long)offset, shown(&chrome->duration),
                       chrome->duration.at);
    uint32_t index = HR_NONE;
    if (kind != HR_CHROME_SKIPPED) {
        index = trace->event_count;
        hr_status status = keep_event(chrome, kind, begin_ns, length_ns, offset, error);
        if (status != HR_OK)
            return status;
    }
    if (chrome->phase == 'B' && !push_open(chrome, index))
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory for ranges", trace->path);
    return HR_OK;
}

void hr_chrome_end(hr_chrome *chrome)
{
    free(chrome->open);
    chrome->open = NULL;
}

typedef struct hr_chrome_device {
    hr_json_text name;
    uint64_t id, multiprocessors, major, minor;
} hr_chrome_device;

static void take_device(void *user, const hr_json_text *key, const hr_json_text *value)
{
    hr_chrome_device *device = user;
    if (hr_json_is(key, "name"))
        device->name = *value;
    else if (hr_json_is(key, "id"))
        hr_json_whole(value, &device->id);
    else if (hr_json_is(key, "numSms"))
        hr_json_whole(value, &device->multiprocessors);
    else if (hr_json_is(key, "computeMajor"))
        hr_json_whole(value, &device->major);
    else if (hr_json_is(key, "computeMinor"))
        hr_json_whole(value, &device->minor);
}

static bool scan_device(hr_json *json, hr_chrome *chrome)
{
    hr_chrome_device about = {0};
    if (!hr_json_object(json, take_device, &about))
        return false;
    uint32_t device = hr_trace_device_of(chrome->trace, about.id);
    if (device == HR_NONE)
        return true; /* the events will run out of memory too, and say so */
    hr_trace_device *known = &chrome->trace->devices[device];
    known->name = intern(chrome->trace, &about.name);
    known->multiprocessors = (uint32_t)about.multiprocessors;
    known->compute_major = (uint32_t)about.major;
    known->compute_minor = (uint32_t)about.minor;
    return true;
}

bool hr_chrome_scan_devices(hr_json *json, hr_chrome *chrome)
{
    if (!hr_json_take(json, '['))
        return false;
    while (!hr_json_take(json, ']')) {
        hr_json_take(json, ',');
        if (!scan_device(json, chrome))
            return false;
    }
    return true;
}

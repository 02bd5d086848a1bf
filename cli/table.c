/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs and their options: the one source of parsing, --help, manual pages and completion. */
#include "cli.h"

#include <string.h>

static const cli_option run_options[] = {
    {"in", 0, "PATH",
     "an input: .npy, an image (.png .jpg .pgm .ppm), or raw with --dtype; - is standard input; once for "
     "each input",
     "file", true},
    {"out", 'o', "PATH", "the output, its format by the name's ending; - is standard output", "file", false},
    {"device", 0, "D", "auto, cpu, cpu:discrete, cuda, cuda:1, cuda:0,1 or cuda:all (default auto)", "device",
     false},
    {"chunk", 0, "SIZE", "bytes of a chunk of the largest array, such as 8M (default: planned)", NULL, false},
    {"depth", 0, "N", "chunks in flight, 1 to 1024 (default: planned)", NULL, false},
    {"pinned", 0, "SIZE",
     "ceiling for pinned memory (default: what the plan needs, at most an eighth of RAM)", NULL, false},
    {"dtype", 0, "DTYPE", "element type of raw inputs; given again, that of the next input", "dtype", true},
    {"shape", 0, "N,N,...",
     "shape of raw inputs; one extent may be ?, taken from the length (default: one axis); given again, that "
     "of the next input",
     NULL, true},
    {"json", 0, NULL, "one JSON object on standard output", NULL, false},
    {"trace", 0, "FILE", "the run as Chrome JSON, which Perfetto and headrace audit open", "file", false},
    {"timeline", 0, NULL, "a picture of the run in the terminal: one row a stage, time to the right", NULL,
     false},
    {"verify", 0, NULL, "compute again on the CPU, compare, say the largest difference", NULL, false},
    {"no-progress", 0, NULL, "no progress line", NULL, false},
    {"list", 0, NULL, "list the ops with their parameters and dtypes, and stop", NULL, false},
    {"quiet", 'q', NULL, "say nothing but failures and results", NULL, false},
    {"verbose", 'v', NULL, "a line for each stage", NULL, false},
    {0},
};

static const cli_option audit_options[] = {
    {"json", 0, NULL, "one JSON object on standard output", NULL, false},
    {"html", 0, "FILE", "a page with a timeline, in one file that works offline", "file", false},
    {"perfetto", 0, "FILE", "the trace with the findings marked, for Perfetto", "file", false},
    {"fail-on", 0, "RULE[,RULE...]",
     "exit 3 when one of them is found, or with overlap<80 when less overlaps; for CI", "rule", false},
    {"min-cost", 0, "PCT", "leave out findings under this share of the span (default 2)", NULL, false},
    {"rules", 0, NULL, "list the rules, what each means and what it needs in the trace, and stop", NULL,
     false},
    {"link", 0, "FILE", "link speeds from headrace bench link --json (default: those seen in the trace)",
     "file", false},
    {"trace", 0, "FILE", "keep what was recorded of a command", "file", false},
    {0},
};

static const cli_option bench_options[] = {
    {"device", 0, "D", "the device to measure (default auto)", "device", false},
    {"json", 0, NULL, "one JSON object on standard output", NULL, false},
    {"quick", 0, NULL, "fewer sizes and repetitions", NULL, false},
    {"quiet", 'q', NULL, "no remarks", NULL, false},
    {0},
};

static const cli_option info_options[] = {
    {"json", 0, NULL, "one JSON object on standard output", NULL, false},
    {0},
};

const cli_verb cli_verbs[] = {
    {
        .name = "run",
        .synopsis = "OP --in PATH [--in PATH ...] --out PATH [OPTION ...]",
        .summary = "Streams arrays through an op on a device and writes the result",
        .example = "headrace run conv2d --filter gauss5 --in photo.jpg --out soft.png --timeline\n"
                   "headrace run add --in a.npy --in b.npy --out c.npy --device cuda --json\n"
                   "headrace run sum --in a.npy",
        .details = "Reading, copying, computing and writing run at the same time, chunk by chunk, so arrays "
                   "may be larger "
                   "than the device's memory. The output is written beside its name and renamed when it is "
                   "whole: an "
                   "existing file survives a failed run.\n"
                   "The parameters of an op follow it as options, such as --by 2 for scale. headrace run "
                   "--list shows them.",
        .options = run_options,
        .words = "op",
        .op_parameters = true,
        .run = cmd_run,
    },
    {
        .name = "audit",
        .synopsis = "TRACE | -- COMMAND [ARG ...]",
        .summary = "Names what keeps copies and kernels from overlapping, what each cause costs, and what "
                   "fixing it gains",
        .example = "headrace audit trace.json.gz\n"
                   "headrace audit report.sqlite --html report.html\n"
                   "headrace audit step.json --fail-on pageable-copy,sync-call",
        .details = "Reads traces of PyTorch's profiler (Chrome JSON, plain or gzip), exports of Nsight "
                   "Systems (SQLite), and "
                   "Headrace's own. Needs no GPU.",
        .options = audit_options,
        .words = "file",
        .command = true,
        .run = cmd_audit,
    },
    {
        .name = "bench",
        .synopsis = "link | calls | sync | pipeline | scatter | kernels | all",
        .summary = "Measures what this link, driver and device really do",
        .example = "headrace bench link --device cuda:0\n"
                   "headrace bench link --json > link.json",
        .details = "link: every direction, size and memory kind. calls: microseconds a call. sync: which "
                   "call waits for "
                   "what, tried on this machine. pipeline: add, conv2d and matmul from host memory to host "
                   "memory, beside "
                   "the plain programs. scatter: many small blocks, by method. kernels: each kernel with "
                   "each copy mechanism. "
                   "Each figure is a median with its spread, of data that was verified.",
        .options = bench_options,
        .words = "link calls sync pipeline scatter kernels all",
        .run = cmd_bench,
    },
    {
        .name = "info",
        .synopsis = "[--json]",
        .summary = "Shows devices, memory, limits and versions, and why an expected device is not there",
        .example = "headrace info",
        .options = info_options,
        .run = cmd_info,
    },
    {0},
};

const cli_verb *cli_find_verb(const char *name)
{
    for (const cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (!strcmp(verb->name, name))
            return verb;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a run tells when it is over: prose, JSON, the result, and the list of ops. */
#include "json.h"
#include "run.h"

#include <inttypes.h>
#include <string.h>

static bool stage_ran(const hr_report *report, int stage)
{
    return report->stage[stage].busy_s > 0 || report->stage[stage].bytes > 0;
}

static void print_stage(const hr_report *report, int stage)
{
    const hr_stage_report *part = &report->stage[stage];
    char bytes[16];
    fprintf(stderr, "  %-8s busy %8.4f s  %10s", hr_stage_name((hr_stage)stage), part->busy_s,
            cli_bytes_text(part->bytes, bytes));
    if (part->busy_s > 0)
        fprintf(stderr, "  %7.2f GB/s", 1e-9 * (double)part->bytes / part->busy_s);
    if (part->ceiling_gbps > 0)
        fprintf(stderr, "  of %.2f measured", part->ceiling_gbps);
    fputc('\n', stderr);
}

static uint64_t total_bytes(const run_job *job)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->in_count; i++)
        bytes += job->in_info[i].bytes == HR_LENGTH_UNKNOWN ? 0 : job->in_info[i].bytes;
    return job->out && job->out_info.bytes != HR_LENGTH_UNKNOWN ? bytes + job->out_info.bytes : bytes;
}

void run_print_report(const run_job *job)
{
    const hr_report *report = &job->report;
    char bytes[16], chunk[16];
    uint64_t moved = total_bytes(job);
    moved = moved ? moved : report->done_bytes;
    fprintf(stderr, "%s on %s (%s): %s in %.3f s", job->op->name, job->device_text, job->device_info.name,
            cli_bytes_text(moved, bytes), report->wall_s);
    if (report->wall_s > 0)
        fprintf(stderr, ", %.2f GB/s", 1e-9 * (double)moved / report->wall_s);
    fprintf(stderr, "; setup %.3f s\n", report->setup_s);
    fprintf(stderr,
            "efficiency %.2f (floor %.3f s, bound by %s), overlap %.2f; %" PRIu64
            " chunk%s of %s, %u in flight\n",
            report->efficiency, report->floor_s, hr_stage_name(report->bottleneck), report->overlap,
            report->chunks, report->chunks == 1 ? "" : "s", cli_bytes_text(report->chunk_bytes, chunk),
            report->depth);
    if (job->verified)
        fprintf(stderr, "verified against the CPU: largest difference %.3g\n", job->max_abs_diff);
    for (int stage = 0; cli_has(job->args, "verbose") && stage < HR_STAGE_COUNT; stage++) {
        if (stage_ran(report, stage))
            print_stage(report, stage);
    }
    if (job->out_path && strcmp(job->out_path, "-") != 0 && cli_has(job->args, "verbose"))
        fprintf(stderr, "wrote %s\n", job->out_path);
}

static void json_array(json_writer *json, const hr_array_info *info, const char *path)
{
    json_open(json, NULL, '{');
    json_string(json, "path", path);
    json_string(json, "dtype", hr_dtype_name(info->dtype));
    json_open(json, "shape", '[');
    for (uint32_t i = 0; i < info->shape.rank; i++) {
        if (info->shape.extent[i] == HR_LENGTH_UNKNOWN)
            json_null(json, NULL);
        else
            json_u64(json, NULL, info->shape.extent[i]);
    }
    json_close(json, ']');
    if (info->bytes == HR_LENGTH_UNKNOWN)
        json_null(json, "bytes");
    else
        json_u64(json, "bytes", info->bytes);
    json_string(json, "method", info->method);
    json_close(json, '}');
}

static void json_stages(json_writer *json, const hr_report *report)
{
    json_open(json, "stages", '{');
    for (int stage = 0; stage < HR_STAGE_COUNT; stage++) {
        /* Staging is a stage of its own only where the data lay in pageable memory. */
        if (stage == HR_STAGE_STAGE && !stage_ran(report, stage))
            continue;
        const hr_stage_report *part = &report->stage[stage];
        json_open(json, hr_stage_name((hr_stage)stage), '{');
        json_real(json, "busy_s", part->busy_s, 6);
        json_u64(json, "bytes", part->bytes);
        if (part->ceiling_gbps > 0)
            json_real(json, "ceiling_gbps", part->ceiling_gbps, 5);
        else
            json_null(json, "ceiling_gbps");
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void json_result(json_writer *json, const hr_result *result)
{
    char text[16];
    switch (result->kind) {
    case HR_RESULT_I64:
        json_i64(json, "result", result->as.i64);
        break;
    case HR_RESULT_U64:
        json_u64(json, "result", result->as.u64);
        break;
    case HR_RESULT_F64:
        json_real(json, "result", result->as.f64, 17);
        break;
    case HR_RESULT_HEX32:
        snprintf(text, sizeof text, "%08" PRIx32, result->as.hex32);
        json_string(json, "result", text);
        break;
    default:
        json_null(json, "result");
    }
}

void run_print_json(const run_job *job)
{
    const hr_report *report = &job->report;
    json_writer json = {.to = stdout};
    json_open(&json, NULL, '{');
    json_string(&json, "headrace", hr_version());
    json_string(&json, "op", job->op->name);
    json_string(&json, "device", job->device_text);
    json_string(&json, "device_name", job->device_info.name);
    json_open(&json, "inputs", '[');
    for (uint32_t i = 0; i < job->in_count; i++)
        json_array(&json, &job->in_info[i], job->in_path[i]);
    json_close(&json, ']');
    json_open(&json, "outputs", '[');
    if (job->out)
        json_array(&json, &job->out_info, job->out_path);
    json_close(&json, ']');
    json_u64(&json, "chunk_bytes", report->chunk_bytes);
    json_u64(&json, "chunks", report->chunks);
    json_u64(&json, "depth", report->depth);
    json_u64(&json, "pinned_bytes", report->pinned_bytes);
    json_u64(&json, "device_bytes", report->device_bytes);
    json_real(&json, "setup_s", report->setup_s, 6);
    json_real(&json, "wall_s", report->wall_s, 6);
    json_stages(&json, report);
    json_real(&json, "floor_s", report->floor_s, 6);
    json_string(&json, "bottleneck", hr_stage_name(report->bottleneck));
    json_real(&json, "efficiency", report->efficiency, 4);
    json_real(&json, "overlap", report->overlap, 4);
    json_real(&json, "predicted_s", report->predicted_s, 6);
    json_result(&json, &report->result);
    if (job->verified)
        json_real(&json, "max_abs_diff", job->max_abs_diff, 9);
    else
        json_null(&json, "max_abs_diff");
    json_close(&json, '}');
    json_end(&json);
}

void run_print_result(const run_job *job)
{
    const hr_result *result = &job->report.result;
    switch (result->kind) {
    case HR_RESULT_I64:
        printf("%" PRId64 "\n", result->as.i64);
        break;
    case HR_RESULT_U64:
        printf("%" PRIu64 "\n", result->as.u64);
        break;
    case HR_RESULT_F64:
        printf("%.17g\n", result->as.f64);
        break;
    case HR_RESULT_HEX32:
        printf("%08" PRIx32 "\n", result->as.hex32);
        break;
    default:
        break;
    }
}

static void json_op(json_writer *json, const hr_op *op)
{
    const hr_op_param *param;
    json_open(json, NULL, '{');
    json_string(json, "op", op->name);
    json_string(json, "summary", op->summary);
    json_u64(json, "inputs", op->inputs);
    json_open(json, "parameters", '[');
    for (uint32_t i = 0; (param = hr_op_param_at(op, i)) != NULL; i++) {
        json_open(json, NULL, '{');
        json_string(json, "name", param->name);
        json_string(json, "type", param->type);
        json_string(json, "default", param->fallback);
        json_string(json, "help", param->help);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "dtypes", '[');
    for (int dtype = HR_DTYPE_NONE + 1; dtype < HR_DTYPE_COUNT; dtype++) {
        if (hr_op_takes(op, (hr_dtype)dtype))
            json_string(json, NULL, hr_dtype_name((hr_dtype)dtype));
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void print_op(const hr_op *op)
{
    const hr_op_param *param;
    printf("%-10s %s\n%-10s %u input%s; dtypes", op->name, op->summary, "", op->inputs,
           op->inputs == 1 ? "" : "s");
    for (int dtype = HR_DTYPE_NONE + 1; dtype < HR_DTYPE_COUNT; dtype++) {
        if (hr_op_takes(op, (hr_dtype)dtype))
            printf(" %s", hr_dtype_name((hr_dtype)dtype));
    }
    fputc('\n', stdout);
    for (uint32_t i = 0; (param = hr_op_param_at(op, i)) != NULL; i++) {
        printf("%-10s --%s: %s (%s", "", param->name, param->help, param->type);
        printf(param->fallback && param->fallback[0] ? "; default %s)\n" : ")\n", param->fallback);
    }
}

void run_print_ops(bool as_json)
{
    const hr_op *op;
    json_writer json = {.to = stdout};
    if (as_json)
        json_open(&json, NULL, '[');
    for (uint32_t i = 0; (op = hr_op_at(i)) != NULL; i++) {
        if (as_json)
            json_op(&json, op);
        else
            print_op(op);
    }
    if (as_json) {
        json_close(&json, ']');
        json_end(&json);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems exports of several ages, made here: whole tables and columns missing, numbers that mean
 * something else. */
#include "support/unit.h"

#include "trace/read/read.h"

#include <sqlite3.h>
#include <string.h>

/* Makes a database with these statements and reads it. */
static hr_status read_database(const char *sql, hr_trace **trace, hr_error *error)
{
    sqlite3 *db = NULL;
    sqlite3_int64 bytes = 0;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    unsigned char *image = sqlite3_serialize(db, "main", &bytes, 0);
    assert_non_null(image);
    *trace = NULL;
    assert_int_equal(hr_trace_new("t.sqlite", trace, error), HR_OK);
    hr_status status = hr_read_nsight_memory(image, (size_t)bytes, "t.sqlite", *trace, error);
    if (status == HR_OK)
        status = hr_trace_finish(*trace, error);
    if (status != HR_OK)
        hr_trace_free(trace);
    sqlite3_free(image);
    sqlite3_close(db);
    return status;
}

static hr_trace *read_sql(const char *sql)
{
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace;
    if (read_database(sql, &trace, &error) != HR_OK)
        fail_msg("%s", error.text);
    return trace;
}

#define STRINGS                                                                          \
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds " \
    "VALUES(1,'cudaMemcpyAsync_v3020'),(2,'kernel_a');"
/* An export without version table, enumerations, globalPid, deviceId of the process, shortName. */
#define OLD                                                                                              \
    STRINGS                                                                                              \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT,end INT,deviceId INT,contextId INT,streamId "     \
    "INT,correlationId INT,"                                                                             \
    "bytes INT,copyKind INT,srcKind INT,dstKind INT);"                                                   \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId INT,nameId " \
    "INT);"                                                                                              \
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,200,84000000,5,1);"                              \
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(120,190,0,1,7,5,4096,1,0,2);"

static void an_old_export_is_read_and_what_it_lacks_is_named(void **state)
{
    (void)state;
    hr_trace *trace = read_sql(OLD);
    const hr_event *copy = &trace->events[trace->work[0]];
    assert_int_equal(copy->direction, HR_DIRECTION_H2D);
    assert_int_equal(copy->source, HR_MEMORY_PAGEABLE);
    assert_int_equal(copy->sink, HR_MEMORY_DEVICE);
    assert_int_equal(copy->peer, trace->calls[0]);
    assert_string_equal(hr_trace_text(trace, trace->events[copy->peer].name), "cudaMemcpyAsync");
    assert_int_equal(trace->threads[0].id, 84000000 & 0xFFFFFF);
    assert_int_equal(trace->processes[0].id, 84000000 >> 24);
    assert_non_null(strstr(trace->missing, "CUPTI_ACTIVITY_KIND_KERNEL"));
    assert_non_null(strstr(trace->missing, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"));
    assert_null(strstr(trace->missing, "CUPTI_ACTIVITY_KIND_MEMCPY"));
    hr_trace_free(&trace);
}

static void numbers_mean_what_the_file_says(void **state)
{
    (void)state;
    hr_trace *trace = read_sql(
        OLD "CREATE TABLE ENUM_CUDA_MEM_KIND(id INT,name TEXT,label TEXT);"
            "INSERT INTO ENUM_CUDA_MEM_KIND VALUES(0,'X_UNKNOWN','Unknown'),(1,'X_PAGEABLE','Pageable'),"
            "(2,'X_PINNED','Pinned'),(3,'X_DEVICE','Device');"
            "CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id INT,name TEXT,label TEXT);"
            "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES(1,'X','Device-to-Host'),(11,'X_UVM','Unified "
            "Host-to-Device');"
            "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind=3,dstKind=2;"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(300,400,0,1,7,0,4096,11,0,0);");
    const hr_event *copy = &trace->events[trace->work[0]];
    assert_int_equal(copy->direction, HR_DIRECTION_D2H);
    assert_int_equal(copy->source, HR_MEMORY_DEVICE);
    assert_int_equal(copy->sink, HR_MEMORY_PINNED);
    assert_int_equal(trace->events[trace->work[1]].direction, HR_DIRECTION_MIGRATE_H2D);
    hr_trace_free(&trace);
}

#define KERNELS                                                                                      \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,contextId INT,streamId " \
    "INT,correlationId INT,globalPid INT,demangledName INT,shortName INT);"
#define CALLS                                                                                            \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId INT,nameId " \
    "INT);"

static void two_processes_share_correlation_numbers_and_device_numbers(void **state)
{
    (void)state;
    hr_trace *trace =
        read_sql(STRINGS KERNELS CALLS "INSERT INTO StringIds VALUES(3,'cuLaunchKernel');"
                                       "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "
                                       "VALUES(100,110,(111<<24)+111,5,3),(105,115,(112<<24)+112,5,3);"
                                       "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
                                       "VALUES(120,130,0,1,7,5,111<<24,2,2),(125,135,0,1,7,5,112<<24,2,2);"
                                       "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INT,cudaId INT,pid INT);"
                                       "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(0,0,111),(1,0,112);");
    for (uint32_t i = 0; i < 2; i++) {
        const hr_event *kernel = &trace->events[trace->work[i]];
        assert_int_equal(kernel->process, trace->events[kernel->peer].process);
        assert_int_equal(trace->processes[kernel->process].id, 111 + i);
        /* The second process sees the second GPU as its first. */
        assert_int_equal(trace->devices[kernel->device].id, i);
    }
    hr_trace_free(&trace);
}

static void streams_have_flags_and_waits_have_streams(void **state)
{
    (void)state;
    hr_trace *trace = read_sql(
        STRINGS KERNELS CALLS
        "INSERT INTO StringIds VALUES(3,'cudaStreamSynchronize_v3020');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
        "VALUES(120,130,0,1,7,5,111<<24,2,2),(125,135,0,1,13,6,111<<24,2,2),"
        "(126,136,0,1,14,7,111<<24,2,2);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,140,(111<<24)+111,9,3);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT,end INT,deviceId INT,contextId "
        "INT,streamId INT,"
        "correlationId INT,globalPid INT,syncType INT,eventId INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(101,139,0,1,13,9,111<<24,1,4294967295);"
        "CREATE TABLE TARGET_INFO_CUDA_STREAM(streamId INT,processId INT,contextId INT,flag INT);"
        "INSERT INTO TARGET_INFO_CUDA_STREAM VALUES(13,111,1,1),(14,111,1,2);"
        "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO(nullStreamId INT,processId INT,contextId INT);"
        "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES(7,111,1);");
    static const hr_stream_flag wanted[] = {HR_STREAM_FLAG_NULL, HR_STREAM_FLAG_BLOCKING,
                                            HR_STREAM_FLAG_NON_BLOCKING};
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(trace->streams[trace->events[trace->work[i]].stream].flag, wanted[i]);
    const hr_event *wait = &trace->events[trace->calls[0]];
    assert_int_equal(wait->call, HR_CALL_STREAM_SYNC);
    assert_int_equal(trace->streams[wait->stream].id, 13);
    assert_int_equal(wait->object, 0);
    assert_true(trace->has.stream_flags);
    hr_trace_free(&trace);
}

static void a_wait_for_the_whole_context_has_no_stream(void **state)
{
    (void)state;
    hr_trace *trace = read_sql(STRINGS KERNELS CALLS
                               "INSERT INTO StringIds VALUES(3,'cudaDeviceSynchronize_v3020');"
                               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(120,130,0,1,7,5,111<<24,2,2);"
                               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(100,140,(111<<24)+111,9,3);"
                               "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT,end INT,deviceId "
                               "INT,contextId INT,streamId INT,"
                               "correlationId INT,globalPid INT,syncType INT,eventId INT);"
                               "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION "
                               "VALUES(101,139,0,1,4294967295,9,111<<24,4,4294967295);");
    assert_int_equal(trace->events[trace->calls[0]].stream, HR_NONE);
    hr_trace_free(&trace);
}

static void other_databases_and_damaged_ones_are_refused(void **state)
{
    (void)state;
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace;
    assert_int_equal(read_database("CREATE TABLE songs(id INT);", &trace, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "CUPTI_ACTIVITY_KIND_KERNEL"));
    assert_int_equal(read_database(STRINGS KERNELS CALLS, &trace, &error), HR_E_FORMAT);
    assert_int_equal(hr_trace_new("t.sqlite", &trace, &error), HR_OK);
    static const char rubbish[4096] = "SQLite format 3";
    assert_int_equal(hr_read_nsight_memory(rubbish, sizeof rubbish, "t.sqlite", trace, &error), HR_E_FORMAT);
    assert_non_null(strstr(error.text, "t.sqlite: "));
    hr_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_export_is_read_and_what_it_lacks_is_named),
        cmocka_unit_test(numbers_mean_what_the_file_says),
        cmocka_unit_test(two_processes_share_correlation_numbers_and_device_numbers),
        cmocka_unit_test(streams_have_flags_and_waits_have_streams),
        cmocka_unit_test(a_wait_for_the_whole_context_has_no_stream),
        cmocka_unit_test(other_databases_and_damaged_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

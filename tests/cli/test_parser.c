/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of arguments and of values, number by number at the edges, and the timeline's picture. */
#include "support/unit.h"

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/run.h"

#include <string.h>

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"1", 1},
                {"8M", 8u << 20},
                {"8m", 8u << 20},
                {"1K", 1024},
                {"2G", (uint64_t)2 << 30},
                {"1T", (uint64_t)1 << 40},
                {"64KiB", 65536},
                {"64KB", 65536},
                {"8191T", (uint64_t)8191 << 40},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5M",
                                      "0x10",
                                      "1KK",
                                      "1KiBx",
                                      "1Mi",
                                      "1E",
                                      "1P",
                                      "12Q",
                                      "1e3",
                                      "∞",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "8388608T",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 77;
        assert_true(cli_parse_size(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes = 77;
        if (cli_parse_size(bad[i], &bytes))
            fail_msg("\"%s\" was taken as %llu bytes", bad[i], (unsigned long long)bytes);
        assert_int_equal(bytes, 77);
    }
}

static void test_counts(void **state)
{
    (void)state;
    uint64_t count = 77;
    assert_true(cli_parse_count("1", 1, 1024, &count) && count == 1);
    assert_true(cli_parse_count("1024", 1, 1024, &count) && count == 1024);
    assert_true(cli_parse_count("18446744073709551615", 0, UINT64_MAX, &count) && count == UINT64_MAX);
    static const char *const bad[] = {
        "0", "1025", "", "-1", "1K", "1 ", "18446744073709551616", "18446744073709551617"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cli_parse_count(bad[i], 1, 1024, &count));
}

static void test_shapes(void **state)
{
    (void)state;
    char why[256];
    hr_shape shape;
    assert_true(cli_parse_shape("4,7", &shape, why, sizeof why));
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.extent[0], 4);
    assert_int_equal(shape.extent[1], 7);
    assert_true(cli_parse_shape("4x7x0", &shape, why, sizeof why));
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.extent[2], 0);
    assert_true(cli_parse_shape("?,7", &shape, why, sizeof why));
    assert_int_equal(shape.extent[0], UINT64_MAX);
    assert_true(cli_parse_shape("1,2,3,4,5,6,7,8", &shape, why, sizeof why));
    static const struct {
        const char *text, *reason;
    } bad[] = {{"", "no list"},
               {",", "no list"},
               {"4,", "no list"},
               {"4 7", "no list"},
               {"4,,7", "no list"},
               {"four", "no list"},
               {"-4", "negative"},
               {"4,-1", "negative"},
               {"?,?", "more than one"},
               {"1,1,1,1,1,1,1,1,1", "more than 8"},
               {"18446744073709551616", "63 bits"},
               {"18446744073709551615", "63 bits"}, /* what stands for an open extent */
               {"9223372036854775808,0", "63 bits"},
               {"4294967296,4294967296", "64 bits"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = 0;
        shape.rank = 99;
        assert_false(cli_parse_shape(bad[i].text, &shape, why, sizeof why));
        assert_int_equal(shape.rank, 99);
        if (!strstr(why, bad[i].reason))
            fail_msg("\"%s\" is refused with: %s", bad[i].text, why);
    }
}

static void parse(const char *verb, const char *const *words, bool good, cli_args *args, char *why,
                  size_t room)
{
    static char *argv[16]; /* args.command points into it */
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc];
    argv[argc] = NULL;
    bool parsed = cli_parse(cli_find_verb(verb), argc, argv, args, why, room);
    if (parsed != good)
        fail_msg("%s %s: %s", verb, words[0], parsed ? "was taken" : why);
}

static void test_arguments(void **state)
{
    (void)state;
    cli_args args;
    char why[256];
    parse("run",
          (const char *[]){"add", "--in", "a", "--in=b", "-oc", "--by", "-3", "--json", "--", "--word", NULL},
          true, &args, why, sizeof why);
    assert_int_equal(args.word_count, 2);
    assert_string_equal(args.words[0], "add");
    assert_string_equal(args.words[1], "--word");
    assert_string_equal(cli_get_nth(&args, "in", 0), "a");
    assert_string_equal(cli_get_nth(&args, "in", 1), "b");
    assert_null(cli_get_nth(&args, "in", 2));
    assert_string_equal(cli_get(&args, "out"), "c");
    assert_string_equal(cli_get(&args, "by"), "-3");
    assert_true(cli_has(&args, "json"));
    assert_false(cli_has(&args, "verify"));
    cli_args_free(&args);

    parse("audit", (const char *[]){"--json", "--", "./app", "--flag", NULL}, true, &args, why, sizeof why);
    assert_int_equal(args.word_count, 0);
    assert_string_equal(args.command[0], "./app");
    assert_string_equal(args.command[1], "--flag");
    assert_null(args.command[2]);
    cli_args_free(&args);

    static const char *const bad[][4] = {{"--in"},      {"--out", "a", "--out=b"},
                                         {"--nothing"}, {"-z"},
                                         {"--json=1"},  {"--jso"},
                                         {"-qv"},       {"---in", "a"},
                                         {"--=x"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parse("run", bad[i], false, &args, why, sizeof why);
        assert_non_null(strstr(why, ": "));
        cli_args_free(&args);
    }
    parse("info", (const char *[]){"--by", "3", NULL}, false, &args, why, sizeof why);
    cli_args_free(&args);
}

/* What a function prints; stays until the next call. */
static const char *printed(void (*print)(FILE *to))
{
    static char text[8192];
    memset(text, 0, sizeof text);
    FILE *to = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(to);
    print(to);
    fclose(to);
    return text;
}

static void print_json(FILE *to)
{
    json_writer json = {.to = to};
    json_open(&json, NULL, '{');
    json_string(&json, "text", "a\"\\\n\x01\x7f");
    json_string(&json, "utf8", "é€😀");
    json_string(&json, "broken", "\xff\xc3(\xed\xa0\x80\xc0\xaf");
    json_string(&json, "none", NULL);
    json_open(&json, "list", '[');
    json_u64(&json, NULL, UINT64_MAX);
    json_i64(&json, NULL, INT64_MIN);
    json_real(&json, NULL, 0.5, 6);
    json_real(&json, NULL, 1.0 / 0.0, 6);
    json_close(&json, ']');
    json_open(&json, "empty", '{');
    json_close(&json, '}');
    json_bool(&json, "yes", true);
    json_close(&json, '}');
}

static void test_json(void **state)
{
    (void)state;
    const char *text = printed(print_json);
    assert_string_equal(
        text, "{\"text\":\"a\\\"\\\\\\u000a\\u0001\\u007f\",\"utf8\":\"é€😀\","
              "\"broken\":\"\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\",\"none\":null,"
              "\"list\":[18446744073709551615,-9223372036854775808,0.5,null],\"empty\":{},\"yes\":true}");
}

static void print_timeline(FILE *to)
{
    /* Read in the first half, compute in the second, write at once at the end. */
    const hr_span spans[] = {
        {.stage = HR_STAGE_COMPUTE, .begin_ns = 1500, .end_ns = 2000, .device = "cpu"},
        {.stage = HR_STAGE_READ, .begin_ns = 1000, .end_ns = 1500},
        {.stage = HR_STAGE_READ, .begin_ns = 1100, .end_ns = 1400, .lane = 1},
    };
    timeline_print(to, spans, 3, 36, false);
}

static void test_timeline(void **state)
{
    (void)state;
    const char *text = printed(print_timeline);
    const char *first = strstr(text, "read    ##########             50 %");
    const char *second = strstr(text, "compute           ##########   50 %");
    bool good = first && second && first < second;
    if (!good)
        fprintf(stderr, "the picture is:\n%s", text);
    assert_true(good);
}

static void print_empty_timeline(FILE *to)
{
    timeline_print(to, NULL, 0, 80, true);
    const hr_span span = {.stage = HR_STAGE_READ, .begin_ns = 5, .end_ns = 5};
    timeline_print(to, &span, 1, 1, true);
}

static void test_empty_timeline(void **state)
{
    (void)state;
    const char *text = printed(print_empty_timeline);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_counts), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_arguments),      cmocka_unit_test(test_json),   cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_empty_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran-ordered arrays read in C order by several threads at once, in pieces far smaller than what is
 * turned together. */
#include "unit/io/scratch.h"

#include <pthread.h>

enum { ROWS = 20000, COLUMNS = 37, THREADS = 4, PIECE = 1000 };

static uint16_t value_at(uint64_t c_index)
{
    return (uint16_t)(c_index * 40503u >> 4);
}

static void write_array(scratch *s, const char *name)
{
    unsigned char *file = malloc(ROWS * COLUMNS * 2 + 256);
    uint16_t *data = malloc(ROWS * COLUMNS * 2);
    for (uint64_t j = 0; j < COLUMNS; j++) {
        for (uint64_t i = 0; i < ROWS; i++) {
            data[j * ROWS + i] = value_at(i * COLUMNS + j);
        }
    }
    char header[128];
    snprintf(header, sizeof header, "{'descr': '<u2', 'fortran_order': True, 'shape': (%d, %d), }", ROWS,
             COLUMNS);
    scratch_write(s, name, file, npy_around(header, data, ROWS * COLUMNS * 2, file));
    free(data);
    free(file);
}

typedef struct reader {
    hr_source *source;
    uint64_t first_piece;
    uint64_t step;
    hr_status status;
    int wrong;
} reader;

static void *read_pieces(void *argument)
{
    reader *r = argument;
    uint16_t buffer[PIECE];
    uint64_t total = ROWS * COLUMNS;
    for (uint64_t piece = r->first_piece; piece * PIECE < total && r->status == HR_OK; piece += r->step) {
        uint64_t first = piece * PIECE;
        uint64_t count = total - first < PIECE ? total - first : PIECE;
        uint64_t got = 0;
        hr_error error = HR_ERROR_INIT;
        r->status = r->source->read(r->source->self, first * 2, buffer, count * 2, &got, &error);
        for (uint64_t i = 0; i < count && r->status == HR_OK; i++) {
            r->wrong += buffer[i] != value_at(first + i);
        }
    }
    return NULL;
}

static void run_readers(hr_input *input, reader readers[THREADS], uint64_t step)
{
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        readers[i] = (reader){hr_input_source(input), step == 1 ? 0 : i, step, HR_OK, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_pieces, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void threads_share_the_work_and_see_the_right_elements(void **state)
{
    scratch *s = *state;
    write_array(s, "f.npy");
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(scratch_path(s, "f.npy"), NULL, &input, &error), HR_OK);
    reader readers[THREADS];
    static const uint64_t steps[] = {THREADS, 1, 61}; /* one front, each its own, far apart */
    for (int round = 0; round < 3; round++) {
        run_readers(input, readers, steps[round]);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(readers[i].status, HR_OK);
            assert_int_equal(readers[i].wrong, 0);
        }
    }
    hr_input_close(&input);
}

static void a_failure_reaches_every_reader_and_passes_with_its_cause(void **state)
{
    scratch *s = *state;
    write_array(s, "f.npy");
    hr_input *input = NULL;
    hr_error error = HR_ERROR_INIT;
    assert_int_equal(hr_input_open(scratch_path(s, "f.npy"), NULL, &input, &error), HR_OK);
    struct stat st;
    assert_int_equal(stat(scratch_path(s, "f.npy"), &st), 0);
    assert_int_equal(truncate(scratch_path(s, "f.npy"), st.st_size - 100), 0);
    reader readers[THREADS];
    run_readers(input, readers, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(readers[i].status, HR_E_FORMAT);
        assert_int_equal(readers[i].wrong, 0);
    }
    write_array(s, "g.npy");
    size_t bytes = 0;
    unsigned char *data = scratch_read(s, "g.npy", &bytes);
    scratch_write(s, "f.npy", data, bytes); /* the same file, whole again */
    free(data);
    run_readers(input, readers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(readers[i].status, HR_OK);
        assert_int_equal(readers[i].wrong, 0);
    }
    hr_input_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_share_the_work_and_see_the_right_elements, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_failure_reaches_every_reader_and_passes_with_its_cause,
                                        scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

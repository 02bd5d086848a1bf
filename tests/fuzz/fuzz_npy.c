/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file: refused with a reason, or read whole and alike in pieces; and as a header alone.
 */
#include "io/npy.h"

#include <headrace/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

/* What the header's reader accepts, its writer must be able to say again. */
static void header_alone(const uint8_t *data, size_t size)
{
    hr_error error = HR_ERROR_INIT;
    hr_npy npy;
    uint64_t header_bytes = 0;
    if (hr_npy_header_bytes("fuzz", data, size, &header_bytes, &error) != HR_OK || header_bytes > size) {
        return;
    }
    if (hr_npy_parse("fuzz", data, header_bytes, HR_DTYPE_NONE, &npy, &error) != HR_OK) {
        must(error.text[0] != '\0' && strchr(error.text, '\n') == NULL, "a failure has one line of text");
        return;
    }
    unsigned char again[HR_NPY_FORMAT_BYTES];
    uint64_t length = hr_npy_format(npy.dtype, &npy.shape, again);
    hr_npy back;
    must(hr_npy_parse("again", again, length, HR_DTYPE_NONE, &back, &error) == HR_OK,
         "what is written is read");
    must(back.dtype == npy.dtype && back.bytes == npy.bytes && back.shape.rank == npy.shape.rank,
         "and means the same");
}

static void pieces(hr_input *input, const unsigned char *all, uint64_t bytes)
{
    hr_source *source = hr_input_source(input);
    hr_error error = HR_ERROR_INIT;
    unsigned char buffer[97];
    for (uint64_t offset = 0; offset < bytes; offset += sizeof buffer) {
        uint64_t n = bytes - offset < sizeof buffer ? bytes - offset : sizeof buffer;
        uint64_t got = 0;
        must(source->read(source->self, offset, buffer, n, &got, &error) == HR_OK && got == n,
             "a piece is read");
        must(memcmp(buffer, all + offset, n) == 0, "pieces make the whole");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    header_alone(data, size);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory");
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.format = HR_FORMAT_NPY;
    hr_error error = HR_ERROR_INIT;
    hr_input *input = NULL;
    if (hr_input_open(path, &options, &input, &error) == HR_OK) {
        hr_array_info info = HR_ARRAY_INFO_INIT;
        hr_input_info(input, &info);
        must(info.bytes <= size, "no more data than the file has");
        unsigned char *all = malloc(info.bytes + 1);
        must(hr_input_read_all(input, all, &error) == HR_OK, "what opens can be read");
        pieces(input, all, info.bytes);
        free(all);
        hr_input_close(&input);
    } else {
        must(input == NULL && error.text[0] != '\0', "a failure says why");
    }
    close(fd);
    return 0;
}

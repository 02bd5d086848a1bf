/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an image: refused with a reason, or decoded to pixels that survive a lossless round trip. */
#include "io/format.h"
#include "io/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "broken promise: %s\n", what);
        abort();
    }
}

static void round_trip(const hr_array_info *info, const void *pixels, hr_format format)
{
    hr_error error = HR_ERROR_INIT;
    hr_image image = {info->dtype, info->shape, info->bytes, (void *)(uintptr_t)pixels, NULL};
    if (hr_image_check("again", "again", format, info->dtype, &info->shape, &error) != HR_OK) {
        return;
    }
    void *encoded = NULL;
    uint64_t bytes = 0;
    must(hr_image_encode("again", format, 0, &image, &encoded, &bytes, &error) == HR_OK,
         "pixels are encoded");
    hr_array_info back = HR_ARRAY_INFO_INIT;
    void *again = NULL;
    must(hr_image_decode("again", format, encoded, bytes, &back, &again, &error) == HR_OK, "and decoded");
    must(back.bytes == info->bytes && memcmp(again, pixels, back.bytes) == 0, "and are the same");
    free(encoded);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hr_format format = hr_format_of_content(data, size);
    if (format == HR_FORMAT_NPY || format == HR_FORMAT_AUTO) {
        format = HR_FORMAT_PNM;
    }
    hr_error error = HR_ERROR_INIT;
    hr_array_info info = HR_ARRAY_INFO_INIT;
    void *pixels = NULL;
    hr_status status = hr_image_decode("fuzz", format, data, size, &info, &pixels, &error);
    if (status != HR_OK) {
        must(pixels == NULL && error.text[0] != '\0' && strchr(error.text, '\n') == NULL,
             "a failure has one line");
        return 0;
    }
    uint64_t bytes = 0;
    must(hr_shape_bytes(&info.shape, info.dtype, &bytes) == HR_OK && bytes == info.bytes,
         "the shape fits the pixels");
    if (info.bytes <= 1u << 20) {
        round_trip(&info, pixels, HR_FORMAT_PNG);
        round_trip(&info, pixels, HR_FORMAT_PNM);
    }
    free(pixels);
    return 0;
}

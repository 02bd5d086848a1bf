/* SPDX-License-Identifier: Apache-2.0 */
/* PGM and PPM, binary and plain. The format is a dozen lines, and the library for it is larger than this
 * reader. */
#include "io/image.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pnm {
    const char *name;
    const unsigned char *at;
    const unsigned char *end;
    hr_error *error;
    bool plain;
    uint64_t channels;
    uint64_t columns, rows, largest;
} pnm;

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static void skip_space(pnm *p)
{
    while (p->at < p->end && (is_space(*p->at) || *p->at == '#')) {
        if (*p->at == '#') {
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r') {
                p->at++;
            }
        } else {
            p->at++;
        }
    }
}

static hr_status take_number(pnm *p, const char *what, uint64_t *number)
{
    skip_space(p);
    if (p->at == p->end) {
        return hr_fail(p->error, HR_E_FORMAT, "%s: PNM: the file ends where %s is needed", p->name, what);
    }
    const unsigned char *begin = p->at;
    uint64_t value = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && p->at - begin < 10) {
        value = value * 10 + (*p->at++ - '0');
    }
    bool separated = p->at == p->end || is_space(*p->at) || *p->at == '#';
    if (p->at == begin || !separated) {
        return hr_fail(p->error, HR_E_FORMAT, "%s: PNM: no number of at most ten digits where %s is needed",
                       p->name, what);
    }
    *number = value;
    return HR_OK;
}

static hr_status take_header(pnm *p)
{
    unsigned char kind = p->end - p->at >= 2 && p->at[0] == 'P' ? p->at[1] : 0;
    if (kind == '1' || kind == '4' || kind == '7') {
        return hr_fail(p->error, HR_E_UNSUPPORTED, "%s: PNM: P%c (%s) is not taken; P2, P3, P5 and P6 are",
                       p->name, kind, kind == '7' ? "PAM" : "a bitmap");
    }
    if (kind != '2' && kind != '3' && kind != '5' && kind != '6') {
        return hr_fail(p->error, HR_E_FORMAT,
                       "%s: not a PGM or PPM file: it does not start with P2, P3, P5 or P6", p->name);
    }
    p->plain = kind < '5';
    p->channels = kind == '3' || kind == '6' ? 3 : 1;
    p->at += 2;
    hr_status status = take_number(p, "the width", &p->columns);
    status = status == HR_OK ? take_number(p, "the height", &p->rows) : status;
    status = status == HR_OK ? take_number(p, "the largest value", &p->largest) : status;
    if (status != HR_OK) {
        return status;
    }
    if (p->largest == 0 || p->largest > 65535) {
        return hr_fail(p->error, HR_E_FORMAT,
                       "%s: PNM: the largest value is %" PRIu64 "; it must be 1 to 65535", p->name,
                       p->largest);
    }
    if (!p->plain && p->at < p->end) {
        p->at++; /* the one space before the pixels */
    }
    return HR_OK;
}

/* The pixels' file bytes: exact for binary files, at least a digit and a space each for plain ones. */
static hr_status check_length(const pnm *p, uint64_t width)
{
    uint64_t left = (uint64_t)(p->end - p->at);
    uint64_t samples = p->rows * p->columns * p->channels;
    uint64_t needed = p->plain ? samples * 2 - (samples > 0) : samples * width;
    if (left < needed) {
        return hr_fail(p->error, HR_E_FORMAT,
                       "%s: PNM: %" PRIu64 " × %" PRIu64 " pixels need %s%" PRIu64
                       " bytes, the file has %" PRIu64,
                       p->name, p->columns, p->rows, p->plain ? "at least " : "", needed, left);
    }
    return HR_OK;
}

static hr_status take_sample(pnm *p, uint64_t width, uint64_t *value)
{
    if (p->plain) {
        hr_status status = take_number(p, "a value", value);
        if (status != HR_OK) {
            return status;
        }
    } else if (width == 1) {
        *value = *p->at++;
    } else {
        *value = (uint64_t)p->at[0] << 8 | p->at[1];
        p->at += 2;
    }
    if (*value > p->largest) {
        return hr_fail(p->error, HR_E_FORMAT, "%s: PNM: a value of %" PRIu64 ", above the largest, %" PRIu64,
                       p->name, *value, p->largest);
    }
    return HR_OK;
}

/* A value means a share of the largest; the array's largest is that of its dtype. */
static hr_status take_pixels(pnm *p, hr_image *image)
{
    uint64_t width = hr_dtype_bytes(image->dtype);
    uint64_t full = width == 1 ? 255 : 65535;
    uint64_t samples = image->bytes / width;
    if (!p->plain && width == 1 && p->largest == full) {
        memcpy(image->pixels, p->at, image->bytes);
        p->at += image->bytes;
        return HR_OK;
    }
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t value;
        hr_status status = take_sample(p, width, &value);
        if (status != HR_OK) {
            return status;
        }
        value = (value * full + p->largest / 2) / p->largest;
        if (width == 1) {
            ((uint8_t *)image->pixels)[i] = (uint8_t)value;
        } else {
            ((uint16_t *)image->pixels)[i] = (uint16_t)value;
        }
    }
    return HR_OK;
}

hr_status hr_pnm_decode(const char *name, const void *encoded, uint64_t bytes, hr_image *image,
                        hr_error *error)
{
    pnm p = {.name = name, .at = encoded, .end = (const unsigned char *)encoded + bytes, .error = error};
    hr_status status = take_header(&p);
    if (status != HR_OK) {
        return status;
    }
    hr_dtype dtype = p.largest > 255 ? HR_U16 : HR_U8;
    uint64_t width = hr_dtype_bytes(dtype);
    /* Edges first, so that the products of check_length() cannot overflow. */
    if (p.rows <= HR_IMAGE_EDGE_LIMIT && p.columns <= HR_IMAGE_EDGE_LIMIT) {
        status = check_length(&p, width);
    }
    hr_image made = {0};
    if (status == HR_OK) {
        status = hr_image_make(name, p.rows, p.columns, p.channels, dtype, p.columns, bytes, &made, error);
    }
    if (status != HR_OK) {
        return status;
    }
    status = take_pixels(&p, &made);
    if (status == HR_OK) {
        skip_space(&p);
        if (p.at != p.end) {
            status = hr_fail(error, HR_E_FORMAT, "%s: PNM: %" PRIu64 " more bytes than the image was to have",
                             name, (uint64_t)(p.end - p.at));
        }
    }
    if (status != HR_OK) {
        free(made.pixels);
        return status;
    }
    *image = made;
    return HR_OK;
}

hr_status hr_pnm_encode(const char *name, const hr_image *image, void **encoded, uint64_t *bytes,
                        hr_error *error)
{
    uint64_t width = hr_dtype_bytes(image->dtype);
    char header[80];
    int length = snprintf(header, sizeof header, "P%c\n%" PRIu64 " %" PRIu64 "\n%d\n",
                          hr_image_channels(&image->shape) == 3 ? '6' : '5', image->shape.extent[1],
                          image->shape.extent[0], width == 1 ? 255 : 65535);
    unsigned char *out = malloc((uint64_t)length + image->bytes);
    if (out == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "%s: no memory to encode %" PRIu64 " bytes", name,
                       image->bytes);
    }
    memcpy(out, header, (size_t)length);
    if (width == 1) {
        memcpy(out + length, image->pixels, image->bytes);
    } else {
        const uint16_t *values = image->pixels;
        for (uint64_t i = 0; i < image->bytes / 2; i++) {
            out[(uint64_t)length + 2 * i] = (unsigned char)(values[i] >> 8);
            out[(uint64_t)length + 2 * i + 1] = (unsigned char)values[i];
        }
    }
    *encoded = out;
    *bytes = (uint64_t)length + image->bytes;
    return HR_OK;
}

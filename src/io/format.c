/* SPDX-License-Identifier: Apache-2.0 */
#include "io/format.h"

#include "io/npy.h"

#include <string.h>
#include <strings.h>

hr_format hr_format_of_content(const unsigned char *start, uint64_t have)
{
    static const unsigned char png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (hr_npy_is(start, have)) {
        return HR_FORMAT_NPY;
    }
    if (have >= sizeof png && memcmp(start, png, sizeof png) == 0) {
        return HR_FORMAT_PNG;
    }
    if (have >= 3 && start[0] == 0xff && start[1] == 0xd8 && start[2] == 0xff) {
        return HR_FORMAT_JPEG;
    }
    if (have >= 3 && start[0] == 'P' && start[1] >= '1' && start[1] <= '7' &&
        memchr(" \t\r\n#", start[2], 5) != NULL) {
        return HR_FORMAT_PNM;
    }
    return HR_FORMAT_AUTO;
}

hr_format hr_format_of_name(const char *path)
{
    static const struct {
        const char *ending;
        hr_format format;
    } endings[] = {
        {".npy", HR_FORMAT_NPY},   {".png", HR_FORMAT_PNG}, {".jpg", HR_FORMAT_JPEG},
        {".jpeg", HR_FORMAT_JPEG}, {".pgm", HR_FORMAT_PNM}, {".ppm", HR_FORMAT_PNM},
        {".pnm", HR_FORMAT_PNM},   {".raw", HR_FORMAT_RAW}, {".bin", HR_FORMAT_RAW},
    };
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof endings[0]; i++) {
        if (strcasecmp(dot, endings[i].ending) == 0) {
            return endings[i].format;
        }
    }
    return HR_FORMAT_AUTO;
}

hr_status hr_format_check(const char *name, hr_format format, hr_error *error)
{
    if ((unsigned)format > HR_FORMAT_PNM) {
        return hr_fail(error, HR_E_INVALID, "%s: format %d is none of the known ones", name, (int)format);
    }
    return HR_OK;
}

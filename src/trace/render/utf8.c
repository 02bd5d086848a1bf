/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/render/utf8.h"

/* Up to the zero byte that ends the text no more is read than is known to be there. */
static bool follows(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

size_t hr_utf8_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] >= 0x01 && at[0] <= 0x7f)
        return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        return follows(at[1], 0x80, 0xbf) ? 2 : 0;
    if (at[0] >= 0xe0 && at[0] <= 0xef) {
        unsigned char low = at[0] == 0xe0 ? 0xa0 : 0x80, high = at[0] == 0xed ? 0x9f : 0xbf;
        return follows(at[1], low, high) && follows(at[2], 0x80, 0xbf) ? 3 : 0;
    }
    if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        unsigned char low = at[0] == 0xf0 ? 0x90 : 0x80, high = at[0] == 0xf4 ? 0x8f : 0xbf;
        return follows(at[1], low, high) && follows(at[2], 0x80, 0xbf) && follows(at[3], 0x80, 0xbf) ? 4 : 0;
    }
    return 0;
}

bool hr_utf8_acts(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    if (length == 1)
        return at[0] < 0x20 || at[0] == 0x7f;
    if (length == 2) /* U+0080 to U+009F; U+061C */
        return (at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c);
    if (length != 3 || at[0] != 0xe2)
        return false;
    /* U+200E, U+200F, U+2028 to U+202E; U+2066 to U+2069 */
    return (at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae))) ||
           (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
}

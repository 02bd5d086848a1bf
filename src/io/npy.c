/* SPDX-License-Identifier: Apache-2.0 */
#include "io/npy.h"

#include "base/checked.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_ORDER '<'
#else
#define NATIVE_ORDER '>'
#endif

bool hr_npy_is(const unsigned char *start, uint64_t have)
{
    return have >= sizeof magic && memcmp(start, magic, sizeof magic) == 0;
}

hr_status hr_npy_header_bytes(const char *name, const unsigned char *start, uint64_t have,
                              uint64_t *header_bytes, hr_error *error)
{
    if (!hr_npy_is(start, have)) {
        return hr_fail(error, HR_E_FORMAT, "%s: not a .npy file: it does not start with \\x93NUMPY", name);
    }
    if (have < 8) {
        return hr_fail(error, HR_E_FORMAT, "%s: the .npy header is cut short after %" PRIu64 " bytes", name,
                       have);
    }
    unsigned major = start[6];
    unsigned minor = start[7];
    if (major < 1 || major > 3 || minor != 0) {
        return hr_fail(error, HR_E_UNSUPPORTED, "%s: .npy version %u.%u: 1.0, 2.0 and 3.0 are known", name,
                       major, minor);
    }
    uint64_t prefix = major == 1 ? 10 : 12;
    if (have < prefix) {
        return hr_fail(error, HR_E_FORMAT, "%s: the .npy header is cut short after %" PRIu64 " bytes", name,
                       have);
    }
    uint64_t text = start[8] | (uint64_t)start[9] << 8;
    if (major > 1) {
        text |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
    }
    if (prefix + text > HR_NPY_HEADER_LIMIT) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: the .npy header says that it is %" PRIu64 " bytes long; at most %" PRIu64
                       " are read",
                       name, text, HR_NPY_HEADER_LIMIT - prefix);
    }
    *header_bytes = prefix + text;
    return HR_OK;
}

/* The header's text is a Python dict literal of three entries. This reads exactly that, and no more Python.
 */
typedef struct parser {
    const char *name;
    const unsigned char *start; /* of the file, so that messages can give offsets */
    const unsigned char *at;
    const unsigned char *end;
    bool long_suffix; /* Python 2 wrote 3L; NumPy reads that in versions 1 and 2 */
    hr_error *error;
} parser;

/* A stretch of the header made fit for a message: one line, printable, short. */
static const char *shown(const unsigned char *text, size_t bytes, char out[64])
{
    size_t n = bytes < 60 ? bytes : 57;
    for (size_t i = 0; i < n; i++) {
        out[i] = (char)(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    }
    snprintf(out + n, 64 - n, "%s", n < bytes ? "..." : "");
    return out;
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) {
        p->at++;
    }
}

static bool next_is(parser *p, char c)
{
    skip_space(p);
    return p->at < p->end && *p->at == (unsigned char)c;
}

static bool take(parser *p, char c)
{
    if (!next_is(p, c)) {
        return false;
    }
    p->at++;
    return true;
}

static hr_status expected(parser *p, const char *what)
{
    skip_space(p);
    uint64_t offset = (uint64_t)(p->at - p->start);
    if (p->at == p->end) {
        return hr_fail(p->error, HR_E_FORMAT,
                       "%s: .npy header: ends at offset %" PRIu64 " where %s is needed", p->name, offset,
                       what);
    }
    char text[64];
    return hr_fail(p->error, HR_E_FORMAT, "%s: .npy header: '%s' at offset %" PRIu64 " where %s is needed",
                   p->name, shown(p->at, 1, text), offset, what);
}

/* A quoted string without escapes; the text stays in the header. */
static hr_status take_string(parser *p, const char *what, const unsigned char **text, size_t *bytes)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) {
        return expected(p, what);
    }
    unsigned char quote = *p->at++;
    const unsigned char *begin = p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\' && *p->at != '\n') {
        p->at++;
    }
    if (p->at == p->end || *p->at != quote) {
        return expected(p, "the end of a string");
    }
    *text = begin;
    *bytes = (size_t)(p->at - begin);
    p->at++;
    return HR_OK;
}

static hr_status take_bool(parser *p, bool *value)
{
    skip_space(p);
    size_t left = (size_t)(p->end - p->at);
    if (left >= 4 && memcmp(p->at, "True", 4) == 0) {
        *value = true;
        p->at += 4;
        return HR_OK;
    }
    if (left >= 5 && memcmp(p->at, "False", 5) == 0) {
        *value = false;
        p->at += 5;
        return HR_OK;
    }
    return expected(p, "True or False");
}

static hr_status take_extent(parser *p, uint32_t axis, uint64_t *extent)
{
    skip_space(p);
    const unsigned char *begin = p->at;
    bool negative = p->at < p->end && *p->at == '-';
    if (negative) {
        p->at++;
    }
    const unsigned char *digits = p->at;
    uint64_t value = 0;
    bool overflow = false;
    while (p->at < p->end && isdigit(*p->at)) {
        overflow |= hr_mul_overflows(value, 10, &value) || hr_add_overflows(value, *p->at - '0', &value);
        p->at++;
    }
    if (p->at == digits) {
        return expected(p, "a number of elements");
    }
    char text[64];
    shown(begin, (size_t)(p->at - begin), text);
    if (negative) {
        return hr_fail(p->error, HR_E_RANGE,
                       "%s: .npy header: extent %" PRIu32 " of the shape is %s; it cannot be negative",
                       p->name, axis, text);
    }
    /* 2^64 − 1 means "not known" elsewhere. */
    if (overflow || value > INT64_MAX) {
        return hr_fail(p->error, HR_E_RANGE,
                       "%s: .npy header: extent %" PRIu32 " of the shape is %s; it must fit in 63 bits",
                       p->name, axis, text);
    }
    if (p->long_suffix && p->at < p->end && *p->at == 'L') {
        p->at++;
    }
    *extent = value;
    return HR_OK;
}

static hr_status take_shape(parser *p, hr_shape *shape)
{
    if (!take(p, '(')) {
        return expected(p, "the shape's '('");
    }
    hr_shape read = {0, {0}};
    bool comma = true;
    while (!next_is(p, ')')) {
        if (!comma) {
            return expected(p, "',' or ')'");
        }
        uint64_t extent = 0;
        hr_status status = take_extent(p, read.rank, &extent);
        if (status != HR_OK) {
            return status;
        }
        if (read.rank == HR_MAX_RANK) {
            return hr_fail(p->error, HR_E_RANGE, "%s: .npy header: the shape has more than %d dimensions",
                           p->name, HR_MAX_RANK);
        }
        read.extent[read.rank++] = extent;
        comma = take(p, ',');
    }
    p->at++;
    /* (3) is a number in Python, not a tuple; NumPy refuses it too. */
    if (read.rank == 1 && !comma) {
        return hr_fail(p->error, HR_E_FORMAT,
                       "%s: .npy header: the shape (%" PRIu64 ") is a number, not a tuple", p->name,
                       read.extent[0]);
    }
    *shape = read;
    return HR_OK;
}

/* The type codes that NumPy writes, and what Headrace makes of them. */
static const struct {
    char text[4];
    hr_dtype dtype;
} codes[] = {
    {"f2", HR_F16},
    {"f4", HR_F32},
    {"f8", HR_F64},
    {"i1", HR_I8},
    {"i2", HR_I16},
    {"i4", HR_I32},
    {"i8", HR_I64},
    {"u1", HR_U8},
    {"u2", HR_U16},
    {"u4", HR_U32},
    {"u8", HR_U64},
    /* ml_dtypes' bfloat16 has no letter of its own: NumPy saves it as "<V2". */
    {"V2", HR_BF16},
};

static const char *kind_in_words(unsigned char letter)
{
    switch (letter) {
    case 'b':
        return "booleans";
    case 'c':
        return "complex numbers";
    case 'O':
        return "Python objects";
    case 'U':
    case 'S':
    case 'a':
        return "strings";
    case 'M':
    case 'm':
        return "dates or times";
    case 'V':
        return "raw bytes";
    case 'f':
        return "floats of this width";
    case 'i':
    case 'u':
        return "integers of this width";
    default:
        return NULL;
    }
}

static hr_status refuse_descr(parser *p, const unsigned char *text, size_t bytes)
{
    char copy[64];
    shown(text, bytes, copy);
    const char *kind = bytes >= 2 && strchr("<>|=", text[0]) ? kind_in_words(text[1]) : NULL;
    if (kind != NULL) {
        return hr_fail(p->error, HR_E_UNSUPPORTED, "%s: dtype '%s': %s are not taken", p->name, copy, kind);
    }
    return hr_fail(p->error, HR_E_UNSUPPORTED, "%s: dtype '%s' is not known", p->name, copy);
}

static hr_status take_descr(parser *p, hr_dtype raw_as, hr_npy *npy)
{
    if (next_is(p, '[') || next_is(p, '(')) {
        return hr_fail(p->error, HR_E_UNSUPPORTED, "%s: dtype: structured arrays are not taken", p->name);
    }
    const unsigned char *text;
    size_t bytes;
    hr_status status = take_string(p, "the dtype's string", &text, &bytes);
    if (status != HR_OK) {
        return status;
    }
    if (bytes != 3 || memchr("<>|=", text[0], 4) == NULL) {
        return refuse_descr(p, text, bytes);
    }
    hr_dtype dtype = HR_DTYPE_NONE;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (memcmp(text + 1, codes[i].text, 2) == 0) {
            dtype = codes[i].dtype;
        }
    }
    if (dtype == HR_DTYPE_NONE) {
        return refuse_descr(p, text, bytes);
    }
    if (dtype == HR_BF16 && text[0] == '|' && raw_as != HR_BF16) {
        return hr_fail(p->error, HR_E_UNSUPPORTED,
                       "%s: dtype '|V2': two raw bytes; if they are bfloat16, say so with the dtype bf16",
                       p->name);
    }
    bool ordered = text[0] == '<' || text[0] == '>';
    npy->dtype = dtype;
    npy->swapped = ordered && text[0] != NATIVE_ORDER && hr_dtype_bytes(dtype) > 1;
    return HR_OK;
}

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

static hr_status take_entry(parser *p, hr_dtype raw_as, hr_npy *npy, unsigned *seen)
{
    static const struct {
        const char *key;
        unsigned bit;
    } keys[] = {{"descr", KEY_DESCR}, {"fortran_order", KEY_ORDER}, {"shape", KEY_SHAPE}};
    const unsigned char *key;
    size_t bytes;
    hr_status status = take_string(p, "a key", &key, &bytes);
    if (status != HR_OK) {
        return status;
    }
    unsigned bit = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (bytes == strlen(keys[i].key) && memcmp(key, keys[i].key, bytes) == 0) {
            bit = keys[i].bit;
        }
    }
    char text[64];
    if (bit == 0 || (*seen & bit) != 0) {
        return hr_fail(p->error, HR_E_FORMAT, "%s: .npy header: %s key '%s'", p->name,
                       bit == 0 ? "unknown" : "repeated", shown(key, bytes, text));
    }
    *seen |= bit;
    if (!take(p, ':')) {
        return expected(p, "':'");
    }
    if (bit == KEY_DESCR) {
        return take_descr(p, raw_as, npy);
    }
    return bit == KEY_ORDER ? take_bool(p, &npy->fortran) : take_shape(p, &npy->shape);
}

static hr_status take_dict(parser *p, hr_dtype raw_as, hr_npy *npy)
{
    if (!take(p, '{')) {
        return expected(p, "'{'");
    }
    unsigned seen = 0;
    bool comma = true;
    while (!next_is(p, '}')) {
        if (!comma) {
            return expected(p, "',' or '}'");
        }
        hr_status status = take_entry(p, raw_as, npy, &seen);
        if (status != HR_OK) {
            return status;
        }
        comma = take(p, ',');
    }
    p->at++;
    skip_space(p);
    if (p->at != p->end) {
        return expected(p, "the end of the header");
    }
    if (seen != KEY_ALL) {
        const char *missing = !(seen & KEY_DESCR) ? "descr" : !(seen & KEY_ORDER) ? "fortran_order" : "shape";
        return hr_fail(p->error, HR_E_FORMAT, "%s: .npy header: key '%s' is missing", p->name, missing);
    }
    return HR_OK;
}

/* Do both orders put the elements in the same places? */
static bool order_matters(const hr_shape *shape)
{
    uint32_t long_axes = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] == 0) {
            return false;
        }
        long_axes += shape->extent[i] > 1;
    }
    return long_axes > 1;
}

hr_status hr_npy_parse(const char *name, const unsigned char *header, uint64_t header_bytes, hr_dtype raw_as,
                       hr_npy *npy, hr_error *error)
{
    uint64_t promised;
    hr_status status = hr_npy_header_bytes(name, header, header_bytes, &promised, error);
    if (status != HR_OK) {
        return status;
    }
    if (promised != header_bytes) {
        return hr_fail(error, HR_E_FORMAT,
                       "%s: the .npy header is cut short: %" PRIu64 " bytes are needed, there are %" PRIu64,
                       name, promised, header_bytes);
    }
    unsigned major = header[6];
    parser p = {name, header, header + (major == 1 ? 10 : 12), header + header_bytes, major < 3, error};
    hr_npy read = {.header_bytes = header_bytes};
    status = take_dict(&p, raw_as, &read);
    if (status != HR_OK) {
        return status;
    }
    read.fortran = read.fortran && order_matters(&read.shape);
    if (hr_shape_bytes(&read.shape, read.dtype, &read.bytes) != HR_OK) {
        return hr_fail(error, HR_E_RANGE,
                       "%s: .npy header: the shape's number of bytes does not fit in 63 bits", name);
    }
    *npy = read;
    return HR_OK;
}

static const char *code_of(hr_dtype dtype)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].dtype == dtype) {
            return codes[i].text;
        }
    }
    return "V1";
}

uint64_t hr_npy_format(hr_dtype dtype, const hr_shape *shape, unsigned char out[HR_NPY_FORMAT_BYTES])
{
    char extents[HR_MAX_RANK * 24] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        at += (size_t)snprintf(extents + at, sizeof extents - at, "%s%" PRIu64, i ? ", " : "",
                               shape->extent[i]);
    }
    char *text = (char *)out + 10;
    char order = hr_dtype_bytes(dtype) > 1 ? NATIVE_ORDER : '|';
    int used = snprintf(text, HR_NPY_FORMAT_BYTES - 10,
                        "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }", order, code_of(dtype),
                        extents, shape->rank == 1 ? "," : "");
    /* Room for the first extent to grow to 20 digits, as NumPy leaves it too. */
    uint64_t spare = 0;
    if (shape->rank > 0) {
        char digits[24];
        spare = 20 - (uint64_t)snprintf(digits, sizeof digits, "%" PRIu64, shape->extent[0]);
    }
    uint64_t total = hr_round_up(10 + (uint64_t)used + spare + 1, 64);
    memset(text + used, ' ', total - 10 - (uint64_t)used - 1);
    out[total - 1] = '\n';
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (unsigned char)(total - 10);
    out[9] = (unsigned char)((total - 10) >> 8);
    return total;
}

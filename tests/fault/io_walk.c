/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through reading and writing once, so that each call to the system can be made to fail in turn:
 *
 *     headrace_io_walk make FOLDER    writes the inputs, and the outputs' old content
 *     headrace_io_walk walk FOLDER    reads every input, writes every output; one line and 1 after a failure
 *     headrace_io_walk check FOLDER   fails unless each output is the old one or the new one, and alone there
 */
#include <headrace/io.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 600, COLUMNS = 700, BYTES = ROWS * COLUMNS };

static const hr_shape plane = {2, {ROWS, COLUMNS}};
static const char *const inputs[] = {"c.npy",       "fortran.npy", "picture.png",
                                     "picture.jpg", "picture.pgm", "data.raw"};
static const char *const outputs[] = {"out.npy", "out.png", "out.jpg", "out.raw"};
static uint8_t pixels[BYTES];

static const char *in_folder(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static hr_status read_one(const char *path, hr_error *error)
{
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.dtype = HR_U8;
    options.shape = plane;
    hr_input *input = NULL;
    hr_status status = hr_input_open(path, &options, &input, error);
    if (status != HR_OK) {
        return status;
    }
    hr_array_info info = HR_ARRAY_INFO_INIT;
    hr_input_info(input, &info);
    static uint8_t back[BYTES];
    status = hr_input_read_all(input, back, error);
    if (status == HR_OK && info.format != HR_FORMAT_JPEG && memcmp(back, pixels, BYTES) != 0) {
        status = hr_fail(error, HR_E_MISMATCH, "%s: other pixels", path);
    }
    hr_input_close(&input);
    return status;
}

static hr_status write_one(const char *path, hr_error *error)
{
    hr_output *output = NULL;
    hr_status status = hr_output_create(path, HR_U8, &plane, NULL, &output, error);
    if (status != HR_OK) {
        return status;
    }
    hr_sink *sink = hr_output_sink(output);
    for (uint64_t at = 0; at < BYTES && status == HR_OK; at += BYTES / 4) {
        status = sink->write(sink->self, at, pixels + at, BYTES / 4, error);
    }
    if (status == HR_OK) {
        status = hr_output_commit(output, error);
    }
    hr_output_close(&output);
    return status;
}

static int told(hr_status status, const hr_error *error)
{
    if (status == HR_OK) {
        return 0;
    }
    fprintf(stderr, "%s\n", error->text[0] != '\0' ? error->text : "no text\nat all");
    return status == HR_E_MISMATCH || status == HR_E_INTERNAL ? 3 : 1;
}

static int write_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    size_t written = file != NULL ? fwrite(data, 1, bytes, file) : 0;
    return file == NULL || fclose(file) != 0 || written != bytes;
}

static int make(const char *folder)
{
    hr_error error = HR_ERROR_INIT;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        hr_status status = write_one(in_folder(folder, inputs[i]), &error);
        if (status != HR_OK) {
            return told(status, &error);
        }
    }
    static unsigned char file[BYTES + 128];
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    int used = snprintf((char *)file + 10, 118,
                        "{'descr': '|u1', 'fortran_order': True, 'shape': (%d, %d), }", ROWS, COLUMNS);
    memset(file + 10 + used, ' ', (size_t)(117 - used));
    file[127] = '\n';
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            file[128 + column * ROWS + row] = pixels[row * COLUMNS + column];
        }
    }
    int failed = write_file(in_folder(folder, "fortran.npy"), file, sizeof file);
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        failed |= write_file(in_folder(folder, outputs[i]), "old", 3);
    }
    return failed;
}

static int walk(const char *folder)
{
    hr_error error = HR_ERROR_INIT;
    hr_status status = HR_OK;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0] && status == HR_OK; i++) {
        status = read_one(in_folder(folder, inputs[i]), &error);
    }
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0] && status == HR_OK; i++) {
        status = write_one(in_folder(folder, outputs[i]), &error);
    }
    return told(status, &error);
}

static int is_old(const char *path)
{
    char start[4] = {0};
    FILE *file = fopen(path, "rb");
    size_t bytes = file != NULL ? fread(start, 1, sizeof start, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return bytes == 3 && memcmp(start, "old", 3) == 0;
}

static int check(const char *folder)
{
    hr_error error = HR_ERROR_INIT;
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        const char *path = in_folder(folder, outputs[i]);
        if (!is_old(path) && read_one(path, &error) != HR_OK) {
            return told(HR_E_MISMATCH, &error);
        }
    }
    size_t count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count == sizeof inputs / sizeof inputs[0] + sizeof outputs / sizeof outputs[0] ? 0 : 4;
}

int main(int count, char **words)
{
    if (count != 3) {
        return 2;
    }
    for (int i = 0; i < BYTES; i++) {
        pixels[i] = (uint8_t)(i * 2654435761u >> 27);
    }
    if (strcmp(words[1], "make") == 0) {
        return make(words[2]);
    }
    return strcmp(words[1], "walk") == 0 ? walk(words[2]) : check(words[2]);
}

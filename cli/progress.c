/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <string.h>
#include <unistd.h>

bool progress_wanted(const cli_args *args)
{
    return isatty(STDERR_FILENO) && !cli_has(args, "no-progress") && !cli_has(args, "quiet");
}

void progress_show(const char *title, uint64_t done_bytes, uint64_t total_bytes, uint64_t elapsed_ns)
{
    char done[16], total[16], line[160];
    double seconds = 1e-9 * (double)elapsed_ns;
    double speed = seconds > 0 ? (double)done_bytes / seconds : 0;
    int used = snprintf(line, sizeof line, "%s  ", title);
    if (total_bytes)
        used += snprintf(line + used, sizeof line - (size_t)used, "%3.0f %%  %s of %s",
                         100 * (double)done_bytes / (double)total_bytes, cli_bytes_text(done_bytes, done),
                         cli_bytes_text(total_bytes, total));
    else
        used += snprintf(line + used, sizeof line - (size_t)used, "%s", cli_bytes_text(done_bytes, done));
    used += snprintf(line + used, sizeof line - (size_t)used, "  %.2f GB/s", speed / 1e9);
    if (total_bytes > done_bytes && speed > 0)
        snprintf(line + used, sizeof line - (size_t)used, "  %.1f s left",
                 (double)(total_bytes - done_bytes) / speed);
    fprintf(stderr, "\r%.79s\033[K", line);
    fflush(stderr);
}

void progress_clear(void)
{
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

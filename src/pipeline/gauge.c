/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gauge.h"

#include "base/clock.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LOWEST_RATE     1e6
#define BINS_PER_OCTAVE 8.0
/* A stage that moved less than this while it was full has not shown what it can do. */
#define SHOWN_SHARE 0.05

void hr_gauge_init(hr_gauge *gauge)
{
    memset(gauge, 0, sizeof *gauge);
    pthread_mutex_init(&gauge->lock, NULL);
}

void hr_gauge_destroy(hr_gauge *gauge)
{
    pthread_mutex_destroy(&gauge->lock);
}

static size_t bin_of(double rate)
{
    double bin = log2(rate / LOWEST_RATE) * BINS_PER_OCTAVE;
    return bin < 0.0 ? 0 : bin >= HR_GAUGE_BINS ? HR_GAUGE_BINS - 1 : (size_t)bin;
}

void hr_gauge_add(hr_gauge *gauge, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
    pthread_mutex_lock(&gauge->lock);
    hr_cover_add(&gauge->cover, begin_ns, end_ns);
    gauge->bytes += bytes;
    gauge->span_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
    if (end_ns > begin_ns && bytes > 0) {
        double rate = (double)bytes * (double)HR_NS_PER_S / (double)(end_ns - begin_ns);
        gauge->bytes_at[bin_of(rate)] += bytes;
    }
    pthread_mutex_unlock(&gauge->lock);
}

static uint64_t full_till(const hr_gauge *gauge, uint64_t now_ns)
{
    bool full = gauge->width > 0 && gauge->active >= gauge->width;
    return gauge->full_ns + (full && now_ns > gauge->full_since_ns ? now_ns - gauge->full_since_ns : 0);
}

hr_mark hr_gauge_enter(hr_gauge *gauge, uint64_t now_ns)
{
    pthread_mutex_lock(&gauge->lock);
    gauge->full_ns = full_till(gauge, now_ns);
    gauge->full_since_ns = now_ns;
    hr_mark mark = {.begin_ns = now_ns, .full_ns = gauge->full_ns};
    gauge->active++;
    pthread_mutex_unlock(&gauge->lock);
    return mark;
}

void hr_gauge_leave(hr_gauge *gauge, hr_mark mark, uint64_t now_ns, uint64_t bytes)
{
    pthread_mutex_lock(&gauge->lock);
    gauge->full_ns = full_till(gauge, now_ns);
    gauge->full_since_ns = now_ns;
    gauge->active--;
    if (now_ns > mark.begin_ns) {
        double share = (double)(gauge->full_ns - mark.full_ns) / (double)(now_ns - mark.begin_ns);
        gauge->full_bytes += share * (double)bytes;
    }
    pthread_mutex_unlock(&gauge->lock);
    if (bytes > 0) {
        hr_gauge_add(gauge, mark.begin_ns, now_ns, bytes);
    }
}

void hr_gauge_finish(hr_gauge *gauge, uint64_t begin_ns, uint64_t end_ns)
{
    hr_gauge_add(gauge, begin_ns, end_ns, 0);
    pthread_mutex_lock(&gauge->lock);
    gauge->finish_ns += end_ns - begin_ns;
    /* Counted once by hr_gauge_add(); the other threads of the stage have nothing to do meanwhile. */
    gauge->span_ns += (gauge->width > 1 ? gauge->width - 1 : 0) * (end_ns - begin_ns);
    pthread_mutex_unlock(&gauge->lock);
}

double hr_gauge_mean_rate(hr_gauge *gauge)
{
    pthread_mutex_lock(&gauge->lock);
    double rate =
        gauge->span_ns > 0 ? (double)gauge->bytes * (double)HR_NS_PER_S / (double)gauge->span_ns : 0.0;
    pthread_mutex_unlock(&gauge->lock);
    return rate;
}

double hr_gauge_busy_s(hr_gauge *gauge)
{
    pthread_mutex_lock(&gauge->lock);
    double busy = (double)hr_cover_length(&gauge->cover) / (double)HR_NS_PER_S;
    pthread_mutex_unlock(&gauge->lock);
    return busy;
}

uint64_t hr_gauge_bytes(hr_gauge *gauge)
{
    pthread_mutex_lock(&gauge->lock);
    uint64_t bytes = gauge->bytes;
    pthread_mutex_unlock(&gauge->lock);
    return bytes;
}

/* Bytes per second that spans reach with the fastest tenth of the bytes: the upper edge of a bin, so never less than
 * what was seen. */
static double fast_rate(const hr_gauge *gauge)
{
    uint64_t all = 0, faster = 0;
    for (size_t i = 0; i < HR_GAUGE_BINS; i++) {
        all += gauge->bytes_at[i];
    }
    for (size_t i = HR_GAUGE_BINS; i-- > 0 && all > 0;) {
        faster += gauge->bytes_at[i];
        if (faster > 0 && faster >= all / 10) {
            return LOWEST_RATE * exp2((double)(i + 1) / BINS_PER_OCTAVE);
        }
    }
    return 0.0;
}

double hr_gauge_alone_s(hr_gauge *gauge)
{
    pthread_mutex_lock(&gauge->lock);
    double bytes = (double)gauge->bytes;
    bool shown = gauge->full_bytes >= SHOWN_SHARE * bytes && gauge->full_ns > 0;
    double moving = shown ? gauge->full_bytes * (double)HR_NS_PER_S / (double)gauge->full_ns
                          : fast_rate(gauge) * (gauge->width > 0 ? gauge->width : 1);
    double finish = (double)gauge->finish_ns / (double)HR_NS_PER_S;
    double seconds = moving > 0.0 ? bytes / moving + finish : bytes > 0.0 ? 0.0 : finish;
    double busy = (double)hr_cover_length(&gauge->cover) / (double)HR_NS_PER_S;
    pthread_mutex_unlock(&gauge->lock);
    return busy > 0.0 && seconds > busy ? busy : seconds;
}

double hr_gauge_ceiling(hr_gauge *gauge)
{
    double seconds = hr_gauge_alone_s(gauge);
    return seconds > 0.0 ? (double)hr_gauge_bytes(gauge) / seconds : 0.0;
}

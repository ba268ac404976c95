/* Whether threads pay, by what steps take with and without them. Now and then the other way is tried, as long as the usual
 * one was used since the last trial, and is the usual one from then on if it was faster. A trial ends as soon as it has lost
 * a small part of that time: so whatever FMUs, cores and other programs do, little is lost against the usual way. */

#include <stdint.h>
#include <stddef.h>

#include "kernel.h"
#include "portable.h"

#include <math.h>

static const double
    LONGEST = 0.5,       /* s from one trial to the next: 1 / PARTS of it is longer than other programs keep a core at a time */
    PARTS = 64,          /* a trial loses at most one part of the time since the last one */
    LOOKS = 8,           /* at the clock, in one part */
    MOST_STEPS = 10000,  /* from one look to the next */
    HOPELESS = 0.2,      /* part of its time: a trial that loses as much ends when it has lost the first part */
    THREADS_GAIN = 0.03; /* part of the time of a step: else the cores are left to others */

static double now(void)
{
    return 1e-9 * (double)fm_nanoseconds();
}

/* From now on with threads, or without. */
static void turn_to(fm_tuner *t, int threads)
{
    t->threads = threads;
    t->spent = t->lost = 0.0;
    t->steps = 0;
}

void fm_tuner_begin(fm_tuner *t, double first)
{
    *t = (fm_tuner){.first = first, .period = first, .n = 1, .left = 1};
}

/* Whether a trial has lasted long enough. */
static int is_decided(const fm_tuner *t, double part)
{
    return t->lost >= part || t->spent >= t->period || t->lost >= fmax(t->first / PARTS, HOPELESS * t->spent);
}

void fm_tuner_decide(fm_tuner *t, double seconds)
{
    double part = t->period / PARTS, each = seconds / t->n;
    t->spent += seconds;
    t->steps += t->n;
    t->lost += seconds - t->n * t->usual;
    if (!t->is_trial && t->spent >= t->period) {
        /* seconds of a step that the other way must not exceed */
        t->usual = t->spent / (double)t->steps * (t->threads ? 1.0 + THREADS_GAIN : 1.0 - THREADS_GAIN);
        t->is_trial = 1;
        turn_to(t, !t->threads);
    } else if (t->is_trial && is_decided(t, part)) {
        int is_faster = t->lost <= 0.0;
        /* a slow step loses more than a part: this trial has, or the first step of one in the other direction will */
        double lost = is_faster ? -t->lost / (double)t->steps : t->lost;
        t->is_trial = 0;
        t->period = fmax(fmin(2.0 * t->period, LONGEST), PARTS * lost);
        turn_to(t, is_faster ? t->threads : !t->threads);
    }
    /* few steps at first, which may take longer now */
    t->n = t->steps ? (int)fmax(fmin(fmin(part / LOOKS / each, 2.0 * t->n), MOST_STEPS), 1.0) : 1;
    t->left = t->n;
}

void fm_tuner_start(fm_tuner *t)
{
    t->since = now();
}

void fm_tuner_stop(fm_tuner *t)
{
    t->seconds += now() - t->since;
}

void fm_tuner_look(fm_kernel *k)
{
    fm_tuner_stop(k->tuner);
    fm_tuner_decide(k->tuner, k->tuner->seconds);
    k->tuner->seconds = 0.0;
    k->threaded = k->tuner->threads;
    fm_tuner_start(k->tuner);
}

/* What a loop over the calls of a Model Exchange FMU of FMI 3.0 costs if it is written by hand: explicit Euler steps, `inner` of
 * them from row to row of an array with all outputs. Nothing else, not even a check. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int (*derivatives)(void *, double *, size_t);
    int (*set_time)(void *, double);
    int (*set_states)(void *, const double *, size_t);
    int (*indicators)(void *, double *, size_t);
    int (*completed)(void *, bool, bool *, bool *);
    int (*get)(void *, const uint32_t *, size_t, double *, size_t);
} functions;

int exchange_run(const functions *f, void *component, size_t n, size_t m, size_t outputs, const uint32_t *references,
                 double *states, double *slopes, double *indicators, double step, int64_t steps, int inner, double *times,
                 double *rows)
{
    int status = 0;
    bool event, end;
    for (int64_t k = 0; k < steps; k++) {
        double now = times[k], there = (double)(k + 1) * step, length = (there - now) / inner;
        for (int part = inner; part > 0; part--) {
            status |= f->derivatives(component, slopes, n);
            for (size_t i = 0; i < n; i++)
                states[i] += length * slopes[i];
            now = part > 1 ? now + length : there;
            status |= f->set_time(component, now);
            status |= f->set_states(component, states, n);
            if (m)
                status |= f->indicators(component, indicators, m);
            status |= f->completed(component, true, &event, &end);
        }
        status |= f->get(component, references, outputs, rows + (size_t)(k + 1) * outputs, outputs);
        times[k + 1] = there;
    }
    return status;
}

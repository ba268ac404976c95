/* The FMI calls of each step, which the tables of functions and fused instructions share. Types: those of the headers of
 * FMI 2.0.5 and 3.0.2. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

typedef int (*fm_access2_t)(void *, const uint32_t *, size_t, void *);
typedef int (*fm_access3_t)(void *, const uint32_t *, size_t, void *, size_t);
typedef int (*fm_step2_t)(void *, double, double, int);
typedef int (*fm_step3_t)(void *, double, double, bool, bool *, bool *, bool *, double *);

/* The result of DoStep if it did not simply succeed: FM_DISCARD with an answer, or a failure. */
int fm_fmi2_answer(const fm_fmu *fmu, int status, double time, fm_answer *answer, const char **function);
int fm_fmi3_answer(int status, double time, fm_answer *answer, const char **function);

/* One step of an FMU; whether no state is restored that was saved before it, see fm_kernel.kept_from. */
FM_INLINE int fm_fmi2_step(const fm_fmu *fmu, void *address, void *component, int keeps, double time, double size,
                                  fm_answer *answer, const char **function)
{
    int status = ((fm_step2_t)address)(component, time, size, keeps);
    return fm_failed(status) ? fm_fmi2_answer(fmu, status, time, answer, function) : status;
}

FM_INLINE int fm_fmi3_step(void *address, void *component, int keeps, double time, double size,
                                  fm_answer *answer, const char **function)
{
    bool event = false, terminate = false, early = false;
    double reached = time + size;
    int status = ((fm_step3_t)address)(component, time, size, keeps, &event, &terminate, &early, &reached);
    if (!fm_failed(status) && !(terminate | early | event))
        return status;
    *answer = (fm_answer){reached, terminate, 0, early, event};
    return fm_fmi3_answer(status, time, answer, function);
}

/* A unit in which something happens at events only: a model of FMI 3.0 with clocks, which needs Event Mode.
 *
 * A model with a continuous output defines EVENT_UNIT_MOVES before it includes this, and has its own model_step.
 */
#ifndef FM_EVENT_UNIT_H
#define FM_EVENT_UNIT_H

#include "model.h"

static fm_Status check_event_mode(fm_Instance *self)
{
    if (fm_uses_event_mode(self)) return FM_OK;
    return fm_report(self, FM_ERROR, "%s acts at events only. It must be instantiated with Event Mode.",
                     FM_MODEL_IDENTIFIER);
}

/* FMI cannot cancel an interval that the importer knows. It can be changed to one that no simulation reaches. */
static const fm_Fraction NEVER = {1000000000000, 1};

/* Says whether the parameters `name.counter` and `name.resolution` are a time; `least` is 1 for one above 0 s. */
static inline fm_Status check_fraction(fm_Instance *self, const char *name, fm_Fraction fraction, uint64_t least)
{
    if (fraction.resolution > 0 && fraction.counter >= least) return FM_OK;
    return fm_report(self, FM_ERROR, "%s is %llu/%llu s. It must be %s 0 s.", name, (unsigned long long)fraction.counter,
                     (unsigned long long)fraction.resolution, least ? "above" : "at least");
}

#ifndef EVENT_UNIT_MOVES
fm_Status model_step(fm_Instance *self, Variables *v, double *h)
{
    return FM_OK;
}
#endif

double model_partial(const Variables *v, uint32_t unknown, uint32_t known)
{
    return NAN;
}

#endif

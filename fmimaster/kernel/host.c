/* The process of an isolated FMU: does what the messages of isolated.c ask for. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "bell.h"
#include "status.h"

#include <string.h>

static void take_sources(fm_host *h)
{
    const fm_message *m = h->message;
    *h->source_degree = m->source_degree;
    *h->source_centre = m->source_centre;
    if (m->source_degree >= 0)
        memcpy(h->source_coefficients, h->source_values, sizeof(double) * h->n_inputs * (size_t)(m->source_degree + 1));
}

static int act(fm_host *h, const fm_request *r, const char **function)
{
    const fm_instance *i = h->instance;
    fm_message *m = h->message;
    switch (r->what) {
    case FM_REQUEST_SET:
    case FM_REQUEST_GET:
        *function = h->segments[r->number]->function;
        return h->segments[r->number]->transfer(h->segments[r->number]);
    case FM_REQUEST_DERIVE:
        *function = h->derivatives[r->number]->function;
        return h->derivatives[r->number]->derive(h->derivatives[r->number]);
    case FM_REQUEST_POLYNOMIALS:
        take_sources(h);
        return i->set_polynomials(i->self, h->references, h->n_inputs, r->number, h->values, r->time, function);
    case FM_REQUEST_STEP: return i->do_step(i->self, r->time, r->size, &m->answer, function);
    case FM_REQUEST_SAVE: return i->save(i->self, r->number, function);
    case FM_REQUEST_RESTORE: return i->restore(i->self, r->number, function);
    case FM_REQUEST_ENTER: return i->enter(i->self, r->number, &m->experiment, function);
    default: return i->update(i->self, &m->update, function);
    }
}

void fm_host_answer(fm_host *h, int status)
{
    fm_message *m = h->message;
    m->status = status;
    ring(&m->answered, h->wakers.answered, h->seen);
}

int fm_host_serve(fm_host *h)
{
    fm_message *m = h->message;
    for (;;) {
        h->seen++;
        if (!spin(&m->asked, h->seen, m->is_crowded))
            while (!has_rung(&m->asked, h->seen))
                sleep_until(&m->asked, h->wakers.asked, h->seen, -1);
        int status = FM_OK, has_stepped = 0;
        for (m->done = 0; m->done < m->n; m->done++) {
            const fm_request *r = &m->requests[m->done];
            if (r->what == FM_TALK)
                return FM_OK;
            status = act(h, r, (const char **)(void *)&m->function);
            if (fm_failed(status))
                break;
            if (r->what == FM_REQUEST_STEP) {
                has_stepped = 1;
                m->at = r->time + r->size; /* for the log of the calls that follow */
            }
        }
        int is_answer = status == FM_DISCARD && m->requests[m->done].what == FM_REQUEST_STEP;
        if (fm_failed(status) && !has_stepped && !is_answer)
            return status;
        /* what fails after a step was not yet asked for: it is called again if it is */
        fm_host_answer(h, is_answer ? FM_DISCARD : FM_OK);
    }
}

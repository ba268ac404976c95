/* The process of an isolated FMU: does what the messages of isolated.c ask for. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "bell.h"
#include "link.h"
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

static int is_between(int number, int end)
{
    return number >= 0 && number < end;
}

/* Whether a request that came over the link can be done. */
static int is_known(const fm_host *h, const fm_request *r)
{
    switch (r->what) {
    case FM_REQUEST_SET:
    case FM_REQUEST_GET: return is_between(r->number, h->n_segments) && h->segments[r->number];
    case FM_REQUEST_DERIVE: return is_between(r->number, h->n_derivatives);
    case FM_REQUEST_POLYNOMIALS:
        return is_between(r->number, h->n_coefficients) && h->message->source_degree < h->n_coefficients;
    case FM_REQUEST_SAVE:
    case FM_REQUEST_RESTORE: return is_between(r->number, h->n_places);
    case FM_REQUEST_ENTER: return is_between(r->number, FM_EVENT_MODE + 1);
    default: return r->what == FM_TALK || r->what == FM_REQUEST_STEP || r->what == FM_REQUEST_UPDATE;
    }
}

/* What a request sets. */
static void add_values_asked(const fm_host *h, const fm_request *r)
{
    size_t row = sizeof(double) * h->n_inputs;
    int degree = h->message->source_degree;
    if (r->what == FM_REQUEST_SET)
        fm_link_add(h->link, h->segments[r->number]->values, h->sizes[r->number]);
    if (r->what == FM_REQUEST_DERIVE)
        fm_link_add(h->link, h->derivatives[r->number]->seed, sizeof(double) * h->derivatives[r->number]->n_seed);
    if (r->what == FM_REQUEST_POLYNOMIALS)
        fm_link_add(h->link, h->values, row * (size_t)(r->number + 1));
    if (r->what == FM_REQUEST_POLYNOMIALS && degree >= 0)
        fm_link_add(h->link, h->source_values, row * (size_t)(degree + 1));
}

/* What it has read. */
static void add_values_answered(const fm_host *h, const fm_request *r)
{
    if (r->what == FM_REQUEST_GET)
        fm_link_add(h->link, h->segments[r->number]->values, h->sizes[r->number]);
    if (r->what == FM_REQUEST_DERIVE) {
        const fm_derivative *d = h->derivatives[r->number];
        fm_link_add(h->link, d->sensitivity, sizeof(double) * d->n_sensitivity);
    }
}

static int take_message(fm_host *h)
{
    fm_link *l = h->link;
    fm_message *m = h->message;
    if (fm_link_begin(l) != FM_OK)
        return FM_ERROR;
    if (!is_between(l->head.n - 1, FM_MOST_REQUESTS))
        return fm_link_refuse(l);
    if (fm_link_take(l, m->requests, sizeof(fm_request) * (size_t)l->head.n) != FM_OK)
        return FM_ERROR;
    fm_take_head(m, &l->head);
    h->seen = l->number;
    for (int i = 0; i < m->n; i++) {
        if (!is_known(h, &m->requests[i]))
            return fm_link_refuse(l);
        add_values_asked(h, &m->requests[i]);
    }
    return fm_link_take_values(l);
}

void fm_host_answer(fm_host *h, int status)
{
    fm_message *m = h->message;
    m->status = status;
    if (!h->link) {
        ring(&m->answered, h->wakers.answered, h->seen);
        return;
    }
    for (int i = 0; i < m->done; i++)
        add_values_answered(h, &m->requests[i]);
    fm_link_send(h->link, m, h->seen, 0); /* if it fails, the next message does not come */
}

static int await_message(fm_host *h)
{
    fm_message *m = h->message;
    if (h->link)
        return take_message(h);
    h->seen++;
    if (!spin_for(&m->asked, h->seen, m->is_crowded))
        while (!has_rung(&m->asked, h->seen))
            sleep_until(&m->asked, h->wakers.asked, h->seen, -1);
    return FM_OK;
}

int fm_host_serve(fm_host *h)
{
    fm_message *m = h->message;
    for (;;) {
        if (await_message(h) != FM_OK)
            return FM_ERROR;
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

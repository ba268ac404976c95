/* An FMU in another process, as the process of the run calls it: values in shared memory, and one message for several requests.
 * host.c is the other end. */

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "bell.h"
#include "link.h"
#include "status.h"

#include <string.h>

enum { PATIENCE = 20000000 }; /* [ns] until Python looks after a host that has not answered */

static int look(void *self)
{
    fm_isolated *f = self;
    f->is_lost = f->is_lost || f->look(f->self);
    return f->is_lost ? FM_ERROR : FM_OK;
}

/* What the requests set. */
static void add_values_asked(const fm_isolated *f)
{
    for (int i = 0; i < f->n; i++) {
        const fm_request *q = &f->message->requests[i];
        const fm_remote *r = f->remotes[i];
        size_t row = sizeof(double) * f->n_inputs;
        int degree = f->message->source_degree;
        if (q->what == FM_REQUEST_SET || q->what == FM_REQUEST_DERIVE)
            fm_link_add(f->link, r->place, r->bytes);
        if (q->what == FM_REQUEST_POLYNOMIALS)
            fm_link_add(f->link, f->derivatives, row * (size_t)(q->number + 1));
        if (q->what == FM_REQUEST_POLYNOMIALS && degree >= 0)
            fm_link_add(f->link, f->coefficients, row * (size_t)(degree + 1));
    }
}

/* What those that were done have read. */
static void add_values_answered(const fm_isolated *f, int done)
{
    for (int i = 0; i < done; i++) {
        int what = f->message->requests[i].what;
        const fm_remote *r = f->remotes[i];
        if (what == FM_REQUEST_GET)
            fm_link_add(f->link, r->place, r->bytes);
        if (what == FM_REQUEST_DERIVE)
            fm_link_add(f->link, r->answer, r->answer_bytes);
    }
}

static int take_answer(fm_isolated *f)
{
    fm_link *l = f->link;
    fm_message *m = f->message;
    for (;;) {
        if (fm_link_begin(l) != FM_OK)
            return FM_ERROR;
        if (l->number == m->asked.count)
            break;
        if (fm_link_skip(l) != FM_OK) /* the answer to a request in Python, which came through the channel */
            return FM_ERROR;
    }
    if (l->head.done < 0 || l->head.done > f->n)
        return fm_link_refuse(l);
    add_values_answered(f, l->head.done);
    if (fm_link_take_values(l) != FM_OK)
        return FM_ERROR;
    m->logged = l->logged;
    m->done = l->head.done;
    m->status = l->head.status;
    m->function = l->head.function;
    m->answer = l->head.answer;
    m->update = l->head.update;
    m->answered.count = m->asked.count;
    return FM_OK;
}

static int await_linked(fm_isolated *f)
{
    f->link->look = look;
    f->link->self = f;
    f->link->head.is_crowded = f->message->is_crowded;
    if (f->message->answered.count == f->message->asked.count)
        return FM_OK; /* await_step has it */
    int status = take_answer(f);
    if (status != FM_OK)
        f->is_lost = look(f) != FM_OK || 1;
    return status;
}

static void post(fm_isolated *f)
{
    fm_message *m = f->message;
    m->at = *f->at;
    m->kept_from = *f->kept_from;
    m->status = FM_OK;
    m->done = 0;
    m->n = f->n;
    f->is_posted = 1;
    if (!f->link) {
        ring(&m->asked, f->wakers.asked, m->asked.count + 1);
        return;
    }
    m->asked.count++;
    add_values_asked(f);
    fm_link_send(f->link, m, m->asked.count, m->n); /* if it fails, waiting for the answer does, too */
}

/* Nothing is collected any more. */
static void begin_anew(fm_isolated *f)
{
    f->n = 0;
    f->has_polynomials = f->is_posted = 0;
}

static int await_answer(fm_isolated *f)
{
    fm_message *m = f->message;
    uint32_t goal = m->asked.count;
    if (f->link)
        return await_linked(f);
    if (!spin_for(&m->answered, goal, m->is_crowded))
        while (!has_rung(&m->answered, goal))
            if (sleep_until(&m->answered, f->wakers.answered, goal, PATIENCE) && look(f))
                return FM_ERROR;
    return FM_OK;
}

/* Send what was collected if that was not done, and wait for the answer. */
static int flush(fm_isolated *f)
{
    fm_message *m = f->message;
    if (f->is_lost)
        return FM_ERROR;
    if (!f->is_posted)
        post(f);
    if (await_answer(f) != FM_OK)
        return FM_ERROR;
    begin_anew(f);
    if (m->logged != f->logged) {
        f->logged = m->logged;
        if (look(f))
            return FM_ERROR;
    }
    return m->status;
}

static int collect(fm_isolated *f, int what, int number, fm_remote *remote)
{
    if (f->is_lost)
        return FM_ERROR;
    if (f->n == FM_MOST_REQUESTS) {
        int status = flush(f);
        if (fm_failed(status))
            return status;
    }
    f->remotes[f->n] = remote;
    f->message->requests[f->n++] = (fm_request){what, number, 0.0, 0.0};
    return FM_OK;
}

/* What was read before is not what the instance has now. */
static void change(fm_isolated *f)
{
    f->change++;
    f->is_after_step = 0;
}

int fm_isolated_talk(fm_isolated *f)
{
    int status = collect(f, FM_TALK, 0, 0);
    if (!fm_failed(status))
        post(f);
    change(f);
    return status;
}

void fm_isolated_talked(fm_isolated *f)
{
    begin_anew(f);
}

static int is_collected(const fm_isolated *f, const fm_remote *r)
{
    for (int i = 0; i < f->n; i++)
        if (f->remotes[i] == r)
            return 1;
    return 0;
}

int fm_isolated_set(const fm_segment *s)
{
    fm_remote *r = s->self;
    fm_isolated *f = r->owner;
    if (is_collected(f, r)) { /* its values are still needed */
        int status = flush(f);
        if (fm_failed(status))
            return status;
    }
    memcpy(r->place, s->values, r->bytes);
    change(f);
    return collect(f, FM_REQUEST_SET, r->number, r);
}

int fm_isolated_get(const fm_segment *s)
{
    fm_remote *r = s->self;
    fm_isolated *f = r->owner;
    if (f->is_after_step && f->n_read < FM_MOST_REQUESTS / 2)
        f->read[f->n_read++] = r;
    if (r->fresh != f->change || f->n > 0) {
        int status = collect(f, FM_REQUEST_GET, r->number, r);
        if (!fm_failed(status))
            status = flush(f);
        if (fm_failed(status))
            return status;
    }
    r->fresh = f->change - 1; /* if it is read again, the FMU is called again */
    memcpy(s->values, r->place, r->bytes);
    return FM_OK;
}

int fm_isolated_derive(const fm_derivative *d)
{
    fm_remote *r = d->self;
    memcpy(r->place, d->seed, r->bytes);
    int status = collect(r->owner, FM_REQUEST_DERIVE, r->number, r);
    if (!fm_failed(status))
        status = flush(r->owner);
    if (!fm_failed(status))
        memcpy(d->sensitivity, r->answer, r->answer_bytes);
    return status;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                           double time, const char **function)
{
    fm_isolated *f = self;
    fm_message *m = f->message;
    (void)references;
    *function = "";
    if (f->has_polynomials) { /* they are still needed */
        int status = flush(f);
        if (fm_failed(status))
            return status;
    }
    change(f);
    int status = collect(f, FM_REQUEST_POLYNOMIALS, degree, 0);
    if (fm_failed(status))
        return status;
    f->has_polynomials = 1;
    m->requests[f->n - 1].time = time;
    memcpy(f->derivatives, derivatives, sizeof(double) * n * (size_t)(degree + 1));
    m->source_degree = f->source_degree ? *f->source_degree : -1;
    if (m->source_degree >= 0) {
        m->source_centre = *f->source_centre;
        memcpy(f->coefficients, f->source_coefficients, sizeof(double) * n * (size_t)(m->source_degree + 1));
    }
    return FM_OK;
}

/* What was read after the step before is read after this one as well, in the same message. */
static int collect_step(fm_isolated *f, double time, double size)
{
    int status = collect(f, FM_REQUEST_STEP, 0, 0);
    if (fm_failed(status))
        return status;
    f->message->requests[f->n - 1].time = time;
    f->message->requests[f->n - 1].size = size;
    f->first_read = f->n;
    for (int i = 0; i < f->n_read; i++)
        collect(f, FM_REQUEST_GET, f->read[i]->number, f->read[i]);
    return FM_OK;
}

static int has_room(const fm_isolated *f)
{
    return f->n + f->n_read + 1 <= FM_MOST_REQUESTS;
}

/* What does not fit in one message is left to do_step. */
static void begin_step(void *self, double time, double size)
{
    fm_isolated *f = self;
    if (has_room(f) && !fm_failed(collect_step(f, time, size)))
        post(f);
}

static void await_step(void *self)
{
    fm_isolated *f = self;
    if (f->is_posted && !f->is_lost)
        await_answer(f); /* if it fails, do_step does, too */
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    fm_isolated *f = self;
    int status = FM_OK, n = f->n_read;
    *function = "DoStep";
    if (!f->is_posted) {
        if (!has_room(f))
            status = flush(f);
        if (!fm_failed(status))
            status = collect_step(f, time, size);
        if (fm_failed(status))
            return status;
    }
    status = flush(f);
    change(f);
    f->is_after_step = 1;
    f->n_read = 0;
    if (status == FM_DISCARD)
        *answer = f->message->answer;
    if (!fm_failed(status))
        for (int i = 0; i < n && f->first_read + i < f->message->done; i++)
            f->read[i]->fresh = f->change;
    return status;
}

static int save(void *self, int place, const char **function)
{
    *function = "";
    return collect(self, FM_REQUEST_SAVE, place, 0);
}

static int restore(void *self, int place, const char **function)
{
    *function = "";
    change(self);
    return collect(self, FM_REQUEST_RESTORE, place, 0);
}

static int enter(void *self, int state, const fm_experiment *experiment, const char **function)
{
    fm_isolated *f = self;
    *function = "";
    change(f);
    if (experiment)
        f->message->experiment = *experiment;
    int status = collect(f, FM_REQUEST_ENTER, state, 0);
    return fm_failed(status) ? status : flush(f);
}

static int update(void *self, fm_update *answer, const char **function)
{
    fm_isolated *f = self;
    *function = "";
    change(f);
    int status = collect(f, FM_REQUEST_UPDATE, 0, 0);
    f->message->update = *answer;
    if (!fm_failed(status))
        status = flush(f);
    *answer = f->message->update;
    return status;
}

void fm_isolated_table(fm_isolated *f, fm_instance *instance)
{
    *instance = (fm_instance){f, set_polynomials, do_step, save, restore, enter, update, 0, begin_step, await_step};
}

/* Elements of semantic adaptation: twins of the instances in fmimaster/fmu/adaptation_elements.py, whose values they share. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"
#include "doubles.h"
#include "status.h"

/* Elements that act at the ticks of an input clock: adaptation_elements.py. */

static void sample(fm_element *e, const fm_slot *value)
{
    if (e->clock->flag)
        *e->sample = *value;
}

static void hold(fm_element *e)
{
    if (e->clock->flag)
        *e->output = *e->input;
}

static void delay(fm_element *e)
{
    if (!e->clock->flag)
        return;
    *e->output = *e->before;
    *e->before = *e->input;
}

/* Elements with thresholds: adaptation_elements.py. */

static double nearest(const fm_element *e)
{
    return floor(e->input->number / e->step + 0.5);
}

static int is_input_above(const fm_element *e)
{
    return e->input->number >= e->level;
}

static double distance(const fm_element *e, const fm_threshold *t)
{
    if (e->kind == FM_LEVEL_CROSSING)
        return t->sign * (e->level - e->input->number);
    return e->step / 2 + e->hysteresis - t->sign * (e->input->number - e->output->number);
}

static int has_passed(const fm_element *e, const fm_threshold *t)
{
    return e->kind == FM_LEVEL_CROSSING && e->is_above->flag == (t->sign > 0);
}

static int is_beyond(const fm_element *e, const fm_threshold *t)
{
    if (e->kind == FM_LEVEL_CROSSING)
        return is_input_above(e) == (t->sign > 0);
    return distance(e, t) <= 0.0 && (nearest(e) - e->multiple->number) * t->sign > 0;
}

static double usual_distance(const fm_element *e)
{
    return e->kind == FM_LEVEL_CROSSING ? e->farthest->number : e->step;
}

static void set_multiple(fm_element *e, double multiple)
{
    e->multiple->number = multiple;
    e->output->number = multiple * e->step;
}

static void start(fm_element *e)
{
    if (e->kind == FM_LEVEL_CROSSING)
        e->is_above->flag = (uint8_t)is_input_above(e);
    else
        set_multiple(e, nearest(e));
}

static void cross(fm_element *e, const fm_threshold *t, int is_located)
{
    if (e->kind == FM_LEVEL_CROSSING) {
        e->is_above->flag = t->sign > 0;
        e->count->integer++;
    } else {
        double following = e->multiple->number + t->sign;
        int is_farther = (nearest(e) - following) * t->sign > 0;
        set_multiple(e, is_located && !is_farther ? following : nearest(e));
    }
}

/* A level crossing in one direction: the input is before its threshold again. */
static void go_back(fm_element *e)
{
    const fm_threshold *t = e->thresholds;
    if (e->kind == FM_LEVEL_CROSSING && e->n_thresholds == 1 && has_passed(e, t) && !is_beyond(e, t) && !t->is_at->flag)
        e->is_above->flag = !e->is_above->flag;
}

static int is_near(const fm_element *e, const fm_threshold *t)
{
    return fabs(distance(e, t)) <= e->near * usual_distance(e);
}

static void note_where(fm_element *e)
{
    for (int i = 0; i < e->n_thresholds; i++)
        e->thresholds[i].is_at->flag = (uint8_t)is_near(e, &e->thresholds[i]);
}

/* Which thresholds the importer has fired; whether there are any. */
static int find_fired(const fm_element *e, int *fired)
{
    int any = 0;
    for (int i = 0; i < e->n_thresholds; i++)
        any |= fired[i] = e->thresholds[i].event->flag;
    return any;
}

/* Which thresholds the input has reached, as the element finds it itself. */
static int find_reached(const fm_element *e, int *reached)
{
    int any = 0;
    for (int i = 0; i < e->n_thresholds && e->policy->integer == e->execute; i++)
        any |= reached[i] = !has_passed(e, &e->thresholds[i]) && is_beyond(e, &e->thresholds[i]);
    return any;
}

static void look(fm_element *e)
{
    int found[FM_MOST_THRESHOLDS], is_fired = find_fired(e, found);
    if (e->kind == FM_LEVEL_CROSSING)
        e->farthest->number = larger(e->farthest->number, fabs(e->input->number - e->level));
    if (!e->is_started->flag) {
        start(e);
        note_where(e);
    } else if (!is_fired) {
        for (int i = 0; i < e->n_thresholds; i++)
            e->thresholds[i].is_at->flag &= (uint8_t)is_near(e, &e->thresholds[i]);
        go_back(e);
    }
    for (int i = 0; i < e->n_thresholds; i++) {
        const fm_threshold *t = &e->thresholds[i];
        t->distance->number = distance(e, t);
        t->passed->number = t->is_at->flag || has_passed(e, t) ? 1.0 : -1.0;
    }
    e->tick->flag = e->is_started->flag && (is_fired || find_reached(e, found));
}

static void cross_thresholds(fm_element *e)
{
    int found[FM_MOST_THRESHOLDS], is_fired = find_fired(e, found);
    if (!is_fired && !find_reached(e, found))
        return;
    for (int i = 0; i < e->n_thresholds; i++)
        if (found[i])
            cross(e, &e->thresholds[i], is_fired);
    if (is_fired)
        note_where(e);
}

/* _evaluate of the instance. */
static void evaluate(fm_element *e)
{
    if (e->kind == FM_SAMPLE_AND_HOLD)
        sample(e, e->input);
    else if (e->kind == FM_UNIT_DELAY)
        sample(e, e->before);
    else if (e->n_thresholds)
        look(e);
}

/* _update of the instance: whether there is another event in the next iteration. */
static int act(fm_element *e)
{
    switch (e->kind) {
    case FM_SAMPLE_AND_HOLD: hold(e); return 0;
    case FM_UNIT_DELAY: delay(e); return 0;
    case FM_MICROSTEP_DELAY: hold(e); return e->clock->flag;
    case FM_EVENT_COUNTER: e->count->integer += e->clock->flag; return 0;
    default: cross_thresholds(e); return 0;
    }
}

static int do_step(void *self, double time, double size, fm_answer *answer, const char **function)
{
    fm_element *e = self;
    int reached[FM_MOST_THRESHOLDS];
    (void)function;
    if (!e->n_thresholds)
        return FM_OK;
    evaluate(e);
    if (!find_reached(e, reached))
        return FM_OK;
    *answer = (fm_answer){time + size, 0, 0, 0, 1};
    return FM_DISCARD;
}

static int save(void *self, int place, const char **function)
{
    const fm_element *e = self;
    (void)function;
    memcpy(e->places + (size_t)place * e->size, e->values, sizeof(fm_slot) * e->size);
    return FM_OK;
}

static int restore(void *self, int place, const char **function)
{
    const fm_element *e = self;
    (void)function;
    memcpy(e->values, e->places + (size_t)place * e->size, sizeof(fm_slot) * e->size);
    return FM_OK;
}

static int enter(void *self, int state, const fm_experiment *experiment, const char **function)
{
    fm_element *e = self;
    (void)experiment, (void)function;
    if (state != FM_EVENT_MODE || !e->n_thresholds)
        return FM_OK;
    evaluate(e);
    e->is_started->flag = 1;
    return FM_OK;
}

static int update(void *self, fm_update *answer, const char **function)
{
    fm_element *e = self;
    (void)function;
    evaluate(e);
    answer->wants_update = act(e);
    for (size_t i = 0; i < e->n_clocks; i++)
        e->clocks[i]->flag = 0;
    if (answer->wants_update)
        e->tick->flag = 1;
    return FM_OK;
}

static int set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                           double time, const char **function)
{
    (void)self, (void)references, (void)n, (void)degree, (void)derivatives, (void)time, (void)function;
    return FM_MISSING;
}

void fm_element_table(fm_element *element, fm_instance *instance)
{
    *instance = (fm_instance){element, set_polynomials, do_step, save, restore, enter, update, 0, 0, 0};
}

int fm_element_set(const fm_segment *s)
{
    const fm_element *e = s->self;
    for (size_t i = 0; i < s->n; i++)
        memcpy(&e->values[s->references[i]], (const char *)s->values + i * s->bytes, s->bytes);
    return FM_OK;
}

int fm_element_get(const fm_segment *s)
{
    fm_element *e = s->self;
    evaluate(e);
    for (size_t i = 0; i < s->n; i++)
        memcpy((char *)s->values + i * s->bytes, &e->values[s->references[i]], s->bytes);
    return FM_OK;
}

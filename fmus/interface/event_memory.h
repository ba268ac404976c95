/* What an instance remembers beside its variables. Included by variables.h: it is a member of Variables, so that a copy
 * of those is the whole FMU state. */
#ifndef FM_EVENT_MEMORY_H
#define FM_EVENT_MEMORY_H

typedef struct {
    bool located;            /* it occurred at the end of the last step, and waits for its execution */
    bool done;               /* it was executed since the last step */
    double payload;          /* where located: what the inputs said of the partner */
    double before[2];        /* indicators at the begin of the last step */
} fm_EventMemory;

typedef struct {
    bool event_waits;        /* the importer is to handle an event before the next step */
    bool inputs_set;         /* continuous inputs were set since the last step, trigger or event */
    double input_age;        /* [s] since when the continuous inputs have not been set, by the steps of the FMU */
    double step;             /* [s] length of the last step; 0 before the first one */
    bool shown;              /* FMI 2.0: the states are those after a trigger that the next step is to execute */
    bool reset;              /* a shared event was executed, or is shown */
    double left[2], payload; /* before that: the states, and what the event was told of the partner */
    fm_EventMemory event[FM_EVENT_COUNT + 1];   /* at least one element: C has no empty arrays */
} fm_Memory;

#endif

/* What an instance remembers beside its variables. Included by variables.h: it is a member of Variables, so that a copy
 * of those is the whole FMU state. */
#ifndef FM_EVENT_MEMORY_H
#define FM_EVENT_MEMORY_H

/* What an event is told of the other members: a value of each, in the order of the manifest. */
typedef struct { double value[FM_MOST_PAYLOAD]; } fm_Payload;

typedef struct {
    bool located;            /* it occurred at the end of the last step, and waits for its execution */
    bool done;               /* it was executed since the last step */
    bool armed;              /* HybridLinear: its largest indicator has been above zero since it was located or possible */
    fm_Payload located_payload;   /* where located: what the inputs said of the partners */
    double now[2];           /* indicators as they were calculated last, for everyone who reads them */
    double before[2];        /* these at the start of the last step */
    int32_t shown;           /* FMI 2.0: the count of the trigger up to which the states show the event */
    int32_t times;           /* FMI 2.0: how often the states show it */
    bool reset;              /* a shared event: it was executed, or is shown, and inputs were not set since then */
    double left[2];          /* before that: the states, */
    fm_Payload payload;      /* and what the event was told of the partners */
} fm_EventMemory;

typedef struct {
    bool event_waits;        /* the importer is to handle an event before the next step */
    bool inputs_set;         /* continuous inputs were set since the last step, trigger or event */
    double input_age;        /* [s] since when the continuous inputs have not been set, by the steps of the FMU */
    double step;             /* [s] length of the last step; 0 before the first one, and after an event between steps */
    bool shown;              /* FMI 2.0: the states are those after triggers that the next step is to execute */
    double left[2];          /* the states before these */
    fm_EventMemory event[FM_EVENT_COUNT + 1];   /* at least one element: C has no empty arrays */
} fm_Memory;

#endif

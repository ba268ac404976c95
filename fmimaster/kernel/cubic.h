/* Cubics, as those of fmimaster/events/cubic.py, and what watches over event indicators have in common besides. */
#ifndef FM_CUBIC_H
#define FM_CUBIC_H

/* Of program/indicators.py and instants/grid.py. */
#define ROUNDING 1e-12
#define SLIVER 1e-9

/* A cubic about the start of an interval, lowest power first. */
typedef struct {
    double c0, c1, c2, c3;
} cubic;

static inline cubic hermite(double before, double slope_before, double after, double slope_after, double h)
{
    double chord = (after - before) / h, b = (slope_after - slope_before) / h, a = (chord - slope_before) / h;
    return (cubic){before, slope_before, 3 * a - b, (b - 2 * a) / h};
}

static inline const double *values_of(const fm_copy *copy)
{
    return copy->outputs[FM_FLOAT64];
}

#endif

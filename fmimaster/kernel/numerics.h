/* Made from fmimaster/numerics by tools/translate_numerics.py: do not edit. */

#ifndef FM_NUMERICS_H
#define FM_NUMERICS_H

#include <math.h>

/* fmimaster/numerics/polynomials.py */

/* Smallest distance of two points, in intervals, for a polynomial through both. */
#define FM_NEAREST 0.02

/* Factor by which a measured error is reduced at each further point. With STEADY, the best of nine settings on the two masses. */
#define FM_FADING 0.9

/* Smallest ratio of two intervals that are treated as equally long; the largest is the inverse. Errors measured over another length are not used. */
#define FM_STEADY 0.8

/* Measured errors below this fraction of the largest value at the points are equal: a polynomial through two points has an error of about a hundred units in the last place. */
#define FM_EQUAL_ERRORS 1e-13

/* Coefficients of the Hermite polynomial of one signal about a centre, by Newton's form with confluent differences. */
static inline void fm_hermite(const double *nodes, const double *samples, int n, double centre, double *work, double *coefficients)
{
    double factorial, shift;
    for (int i = 0; i < n; i++) {
        work[i] = samples[i];
        work[2 * n + i] = i;
        if (i > 0 && nodes[i] == nodes[i - 1]) {
            work[i] = work[i - 1];
            work[2 * n + i] = work[2 * n + i - 1];
        }
    }
    work[n] = work[0];
    factorial = 1.0;
    for (int m = 1; m < n; m++) {
        factorial *= m;
        for (int i = 0; i < n - m; i++) {
            if (nodes[i + m] == nodes[i]) {
                work[i] = samples[(int)(work[2 * n + i]) + m] / factorial;
            } else {
                work[i] = (work[i + 1] - work[i]) / (nodes[i + m] - nodes[i]);
            }
        }
        work[n + m] = work[0];
    }
    for (int i = 0; i < n; i++) {
        coefficients[i] = 0.0;
    }
    for (int m = n - 1; m > -1; m--) {
        shift = centre - nodes[m];
        for (int i = n - 1 - m; i > 0; i--) {
            coefficients[i] = coefficients[i] * shift + coefficients[i - 1];
        }
        coefficients[0] = coefficients[0] * shift + work[n + m];
    }
}

/* Derivative of a polynomial at distance s from its centre; of order 0: the value. Coefficients are a stride apart. */
static inline double fm_horner(const double *coefficients, int stride, int degree, int order, double s)
{
    double value, weight;
    value = 0.0;
    for (int p = degree; p > order - 1; p--) {
        weight = 1.0;
        for (int j = 0; j < order; j++) {
            weight *= p - j;
        }
        value = value * s + weight * coefficients[p * stride];
    }
    return value;
}

/* Mean of a polynomial from its centre over a length in s. Coefficients are a stride apart. */
static inline double fm_mean(const double *coefficients, int stride, int degree, double length)
{
    double value;
    value = 0.0;
    for (int p = degree; p > -1; p--) {
        value = value * length + coefficients[p * stride] / (p + 1.0);
    }
    return value;
}

/* The error of a candidate of an adaptive polynomial, with a new one measured; NaN: none is known yet. */
static inline double fm_faded(double known, double error)
{
    return FM_FADING * known > error ? FM_FADING * known : error;
}

/* The candidate with the smallest error: the first one if errors are not known for this length of an interval. */
static inline int fm_best_candidate(const double *errors, int n, double largest, double last, double length)
{
    double error;
    int best;
    if (isnan(errors[0]) || !(FM_STEADY * last <= length && length <= last / FM_STEADY)) {
        return 0;
    }
    best = 0;
    for (int c = 1; c < n; c++) {
        error = errors[c] > FM_EQUAL_ERRORS * largest ? errors[c] : FM_EQUAL_ERRORS * largest;
        if (error < errors[best]) {
            best = c;
        }
    }
    return best;
}

/* A held value, and what the input lacked over the last interval in addition; what is given is remembered. */
static inline double fm_compensated(double value, double half, double compensation, double now, double length, int are_several, double *lacking, double *given_from, int n)
{
    double lacked;
    int place, last;
    place = 0;
    last = -1;
    for (int k = 0; k < n; k++) {
        if (given_from[k] >= now) {
            given_from[k] = NAN;
        } else if (!isnan(given_from[k]) && (last < 0 || given_from[k] > given_from[last])) {
            last = k;
        }
    }
    for (int k = 0; k < n; k++) {
        if (isnan(given_from[k])) {
            place = k;
            break;
        }
        if (given_from[k] < given_from[place]) {
            place = k;
        }
    }
    if (last >= 0 && are_several) {
        lacked = half + lacking[last];
        if (isfinite(lacked)) {
            value = value + compensation * lacked * (now - given_from[last]) / length;
        }
    }
    lacking[place] = half - value;
    given_from[place] = now;
    return value;
}

#endif

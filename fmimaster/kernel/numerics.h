/* Made from fmimaster/numerics by tools/translate_numerics.py: do not edit. */

#ifndef FM_NUMERICS_H
#define FM_NUMERICS_H

#include <math.h>

#include "doubles.h"

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

/* Value of a polynomial at distance s from its centre. Coefficients are a stride apart. */
static inline double fm_horner(const double *coefficients, int stride, int degree, double s)
{
    double value;
    value = 0.0;
    for (int p = degree; p > -1; p--) {
        value = value * s + coefficients[p * stride];
    }
    return value;
}

/* Weights of the coefficients in the derivative of this order, from those in the one before; of order 0 they are 1. */
static inline void fm_next_weights(double *weights, int degree, int order)
{
    for (int p = order; p < degree + 1; p++) {
        weights[p] *= p - (order - 1);
    }
}

/* Derivative of a polynomial at distance s from its centre. Coefficients are a stride apart, their weights are not. */
static inline double fm_derivative_at(const double *coefficients, const double *weights, int stride, int degree, int order, double s)
{
    double value;
    value = 0.0;
    for (int p = degree; p > order - 1; p--) {
        value = value * s + weights[p] * coefficients[p * stride];
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

/* Value for one half of an interval, number 1 or 2: both have the mean and the first moment of the polynomial. */
static inline double fm_half_mean(const double *coefficients, int stride, int degree, double length, int half)
{
    double whole, value, weight;
    whole = half == 1 ? 2.0 * length : length;
    value = 0.0;
    for (int p = degree; p > -1; p--) {
        if (half == 1) {
            weight = 3.0 / (p + 1.0) - 4.0 / (p + 2.0);
        } else if (p - 2 * (int)(p / 2.0) == 0) {
            weight = 1.0 / (p + 1.0);
        } else {
            weight = 2.0 / (p + 2.0);
        }
        value = value * whole + coefficients[p * stride] * weight;
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

/* Value, slope and last term at a time of the polynomial through n values at times, by Newton's form. */
static inline void fm_newton(double *differences, const double *times, int n, double time, double *found)
{
    double total, rate, last, product, slope_of_product, distance;
    total = differences[0];
    rate = 0.0;
    last = 0.0;
    product = 1.0;
    slope_of_product = 0.0;
    for (int k = 1; k < n; k++) {
        for (int i = 0; i < n - k; i++) {
            differences[i] = (differences[i + 1] - differences[i]) / (times[i + k] - times[i]);
        }
        distance = time - times[k - 1];
        slope_of_product = slope_of_product * distance + product;
        product *= distance;
        last = differences[0] * product;
        total += last;
        rate += differences[0] * slope_of_product;
    }
    found[0] = total;
    found[1] = rate;
    found[2] = last;
}

/* fmimaster/numerics/indicators.py */

/* A value is not above zero if it is no more than this part of the largest one that it has had: a few thousand roundings, since indicators are differences of larger numbers and come out of solvers. */
#define FM_ROUNDING 1e-12

/* Rounding of a difference of inputs, as a part of the largest one. */
#define FM_OF_INPUTS 3.552713678800501e-15

/* An indicator without derivative is above zero above this part of its largest value: differences are not taken for it. */
#define FM_FAR 1e-06

/* Length of the last bracket of a located change, relative to the time. */
#define FM_BRACKET 8.881784197001252e-16

#define FM_MOST_TRIALS 400

/* Trials after which a bracket is halved: an indicator that jumps defeats secants. */
#define FM_BISECT_EVERY 4

/* Number of values for an extrapolation: the last term of a parabola is its error estimate. */
#define FM_LEAST_POINTS 3

/* Value of a cubic at a time in s. */
static inline double fm_cubic(const double *p, double s)
{
    return p[0] + s * (p[1] + s * (p[2] + s * p[3]));
}

/* Slope of a cubic at a time in s. */
static inline double fm_cubic_slope(const double *p, double s)
{
    return p[1] + s * (2.0 * p[2] + s * 3.0 * p[3]);
}

/* An indicator is the slope of another one if they agree to this fraction: far more than rounding, far less than chance. */
#define FM_SAME_SLOPE 1e-09

/* Trials for the root of a cubic: tangents need a few, halvings alone about 60. */
#define FM_MOST_TANGENTS 200

/* Two roots are equal if they differ by this part, and a cubic is 0 there if it is this part of its largest terms. */
#define FM_SAME_ROOT 8.881784197001252e-16

/* The time in s at which a cubic falls to 0, by tangents: it is above 0 at `low`, and not at `high`. */
static inline double fm_falling_root(const double *p, double low, double high)
{
    double t, change, value, slope, following;
    int trials;
    t = low + 0.5 * (high - low);
    change = high - low;
    value = fm_cubic(p, t);
    trials = 0;
    while (trials < FM_MOST_TANGENTS && fabs(change) > FM_SAME_ROOT * fabs(t) && fabs(value) > FM_SAME_ROOT * larger(fabs(p[0]), fabs(p[1] * t))) {
        slope = fm_cubic_slope(p, t);
        if (value > 0.0) {
            low = t;
        } else {
            high = t;
        }
        following = low + 0.5 * (high - low);
        if (slope < 0.0 && low < t - value / slope && t - value / slope < high) {
            following = t - value / slope;
        }
        change = following - t;
        t = following;
        value = fm_cubic(p, t);
        trials += 1;
    }
    return t;
}

/* A cubic is 0 if it is smaller than this factor times the sum of its terms over the horizon: thousands of roundings. */
#define FM_NOTHING 1e-12

/* [s] The smallest positive double: where a cubic is above 0 now, it does not fall to 0 now. */
#define FM_EARLIEST 2.2250738585072014e-308

/* The sum of the sizes of the terms of a cubic at a time in s. */
static inline double fm_terms(const double *p, double s)
{
    return fabs(p[0]) + s * (fabs(p[1]) + s * (fabs(p[2]) + s * fabs(p[3])));
}

/* The first time in s after `low` at which a cubic has an extremum; the horizon if there is none before. */
static inline double fm_next_extremum(const double *p, double low, double horizon)
{
    double a, b, c, found, q;
    a = 3.0 * p[3];
    b = p[2];
    c = p[1];
    found = horizon;
    if (!(b * b - a * c < 0.0)) {
        q = -b - copysign(sqrt(b * b - a * c), b);
        if (a != 0.0 && low < q / a && q / a < found) {
            found = q / a;
        }
        if (q != 0.0 && low < c / q && c / q < found) {
            found = c / q;
        }
    }
    return found;
}

/* Whether none of m cubics is above 0 at a time in s. */
static inline int fm_are_all_reached(double (*cubics)[4], int m, double s, double horizon)
{
    int i;
    i = 0;
    while (i < m && fm_cubic(cubics[i], s) <= FM_NOTHING * fm_terms(cubics[i], horizon)) {
        i += 1;
    }
    return i == m;
}

/* First time in s at which none of m cubics is above 0: the start, or a time at which one falls to 0; inf if there is none. Only times after `after` and up to the horizon are considered. */
static inline double fm_first_time_reached(double (*cubics)[4], int m, double horizon, double after)
{
    double first, low, high, root;
    if (after < 0.0 && fm_are_all_reached(cubics, m, 0.0, horizon)) {
        return 0.0;
    }
    first = INFINITY;
    for (int i = 0; i < m; i++) {
        low = 0.0;
        while (low < horizon) {
            high = fm_next_extremum(cubics[i], low, horizon);
            if (fm_cubic(cubics[i], low) > 0.0 && fm_cubic(cubics[i], high) <= 0.0) {
                root = larger(fm_falling_root(cubics[i], low, high), FM_EARLIEST);
                if (after < root && root < first && fm_are_all_reached(cubics, m, root, horizon)) {
                    first = root;
                }
            }
            low = high;
        }
    }
    return first;
}

/* Whether an indicator of this value is the slope of another one, as a relative velocity is that of a distance. */
static inline int fm_is_slope(double value, double slope)
{
    return fabs(value - slope) <= FM_SAME_SLOPE * larger(fabs(value), fabs(slope));
}

/* The line through a value with a slope. */
static inline void fm_line(double now, double slope, double *p)
{
    p[0] = now;
    p[1] = slope;
    p[2] = 0.0;
    p[3] = 0.0;
}

/* The cubic through values and slopes at both ends of an interval of length h in s; h < 0: about its end. */
static inline void fm_through_slopes(double before, double slope_before, double after, double slope_after, double h, double *p)
{
    double chord, b, a;
    chord = (after - before) / h;
    b = (slope_after - slope_before) / h;
    a = (chord - slope_before) / h;
    p[0] = before;
    p[1] = slope_before;
    p[2] = 3.0 * a - b;
    p[3] = (b - 2.0 * a) / h;
}

/* The parabola through three values, about the first: the second is h in s later, the third k after that; h, k < 0: earlier. */
static inline void fm_parabola(double now, double before, double h, double older, double k, double *p)
{
    double first, second;
    first = (before - now) / h;
    second = (older - before) / k;
    p[0] = now;
    p[2] = (second - first) / (h + k);
    p[1] = first - p[2] * h;
    p[3] = 0.0;
}

/* Whether a cubic certainly stays above 0: its Bernstein coefficients over the horizon bound it from below. */
static inline int fm_stays_above(const double *p, double horizon)
{
    double b1, b2;
    int is_above;
    b1 = p[1] * horizon;
    b2 = p[2] * horizon * horizon;
    is_above = p[0] > 0.0 && p[0] + b1 / 3.0 > 0.0 && p[0] + (2.0 * b1 + b2) / 3.0 > 0.0 && p[0] + b1 + b2 + p[3] * horizon * horizon * horizon > 0.0;
    return is_above;
}

/* The cubic of the indicator z, with the derivative dz or -1, about now, by the outputs h and k in s before. */
static inline void fm_from_before(int z, int dz, const double *values, const double *before, double h, const double *older, double k, double *p)
{
    if (dz >= 0) {
        fm_through_slopes(values[z], values[dz], before[z], before[dz], -h, p);
    } else if (k != 0.0) {
        fm_parabola(values[z], before[z], -h, older[z], h - k, p);
    } else {
        fm_line(values[z], (values[z] - before[z]) / h, p);
    }
}

/* The cubic of the indicator z, with the derivative dz or -1, through both ends of a step, about its start. */
static inline void fm_from_ends(int z, int dz, const double *before, const double *after, double length, const double *older, double k, double *p)
{
    if (dz >= 0) {
        fm_through_slopes(before[z], before[dz], after[z], after[dz], length, p);
    } else if (k != 0.0) {
        fm_parabola(before[z], after[z], length, older[z], -k - length, p);
    } else {
        fm_line(before[z], (after[z] - before[z]) / length, p);
    }
}

/* The same as `stays_above` of the cubic `from_ends`, with less work, if there is a derivative. */
static inline int fm_stays_above_between(int z, int dz, const double *before, const double *after, double length)
{
    double third;
    third = length / 3.0;
    return dz >= 0 && before[z] > 0.0 && after[z] > 0.0 && before[z] + before[dz] * third > 0.0 && after[z] - after[dz] * third > 0.0;
}

/* Value, slope and error bound of a cubic at h in s, where it is not known: the other point is at s < 0. */
static inline void fm_by_slopes(const double *p, double s, double h, double *expected)
{
    expected[0] = fm_cubic(p, h);
    expected[1] = fm_cubic_slope(p, h);
    expected[2] = fabs(p[3]) * h * h * (h - s) + FM_ROUNDING * (fabs(p[0]) + fabs(p[1] * h));
}

/* Value, slope, error bound and last term at h in s of the polynomial through n values, which are overwritten. */
static inline void fm_by_values(double *values, const double *times, int n, double h, double *expected)
{
    expected[0] = INFINITY;
    expected[1] = 0.0;
    expected[2] = INFINITY;
    expected[3] = INFINITY;
    if (n >= FM_LEAST_POINTS) {
        fm_newton(values, times, n, h, expected);
        expected[3] = fabs(expected[2]);
        expected[2] = 0.0;
    }
}

/* Whether a bracket in s is as short as rounding allows. */
static inline int fm_is_located(double low, double high)
{
    return high - low <= 2.0 * (FM_BRACKET * larger(fabs(low), fabs(high)));
}

/* The next time in s to try in a bracket: its middle, or the earliest of the secants of the m indicators that have changed their domain. */
static inline double fm_next_trial(double low, double high, double low_weight, double high_weight, const double *domains, const double *at_low, const double *at_high, int m, int is_halved)
{
    double least, middle, a, b;
    least = FM_BRACKET * larger(fabs(low), fabs(high));
    middle = high;
    for (int j = 0; j < m; j++) {
        if ((at_high[j] > 0.0) != (domains[j] > 0.0)) {
            a = low_weight * at_low[j];
            b = high_weight * at_high[j];
            middle = smaller(middle, low + (high - low) * (a / (a - b)));
        }
    }
    if (is_halved) {
        middle = low + 0.5 * (high - low);
    }
    return smaller(larger(middle, low + least), high - least);
}

/* fmimaster/numerics/anderson.py */

/* A difference of residuals is left out if its part independent of the newer ones is relatively smaller than this. */
#define FM_DEPENDENT 1e-12

/* Relative change of the iterate below which rounding decides how the residual changes. */
#define FM_LEAST_STEP 1e-08

/* Anderson acceleration is abandoned at a residual of this many times the first one. */
#define FM_BLOWN_UP 100000000.0

/* Scalar product of the n numbers from a[first] on with b. */
static inline double fm_dot(const double *a, int first, const double *b, int n)
{
    double total;
    total = 0.0;
    for (int i = 0; i < n; i++) {
        total += a[first + i] * b[i];
    }
    return total;
}

/* Euclidean norm of the n numbers from values[first] on. */
static inline double fm_norm(const double *values, int first, int n)
{
    double total;
    total = 0.0;
    for (int i = 0; i < n; i++) {
        total += values[first + i] * values[first + i];
    }
    return sqrt(total);
}

/* The difference of two vectors becomes the first row, before so many older ones. */
static inline void fm_keep_difference(const double *now, const double *before, int n, int older, double *rows)
{
    for (int i = older * n - 1; i > -1; i--) {
        rows[n + i] = rows[i];
    }
    for (int i = 0; i < n; i++) {
        rows[i] = now[i] - before[i];
    }
}

/* How many rows count: the sum of them with these factors is nearest to the right side. */
static inline int fm_least_squares(const double *rows, int kept, double *right, int n, double *basis, double *upper, int *chosen, double *factors)
{
    double product, rest, factor;
    int used, own;
    used = 0;
    for (int k = 0; k < kept; k++) {
        own = used * n;
        for (int i = 0; i < n; i++) {
            basis[own + i] = rows[k * n + i];
        }
        for (int p = 0; p < used; p++) {
            product = 0.0;
            for (int i = 0; i < n; i++) {
                product += basis[p * n + i] * basis[own + i];
            }
            for (int i = 0; i < n; i++) {
                basis[own + i] -= product * basis[p * n + i];
            }
            upper[p * kept + used] = product;
        }
        rest = fm_norm(basis, own, n);
        if (!(rest > FM_DEPENDENT * fm_norm(rows, k * n, n))) {
            continue;
        }
        for (int i = 0; i < n; i++) {
            basis[own + i] /= rest;
        }
        factor = fm_dot(basis, own, right, n);
        for (int i = 0; i < n; i++) {
            right[i] -= factor * basis[own + i];
        }
        upper[used * kept + used] = rest;
        chosen[used] = k;
        factors[used] = factor;
        used += 1;
    }
    for (int p = used - 1; p > -1; p--) {
        for (int k = p + 1; k < used; k++) {
            factors[p] -= upper[p * kept + k] * factors[k];
        }
        factors[p] /= upper[p * kept + p];
    }
    return used;
}

/* The next iterate from this one and its residual, by the differences of both that count. */
static inline void fm_next_iterate(const double *s, const double *r, int n, const double *steps, const double *changes, const int *chosen, const double *factors, int used, double *found)
{
    double following;
    int k;
    for (int i = 0; i < n; i++) {
        following = s[i] + r[i];
        for (int p = 0; p < used; p++) {
            k = chosen[p] * n + i;
            following -= (steps[k] + changes[k]) * factors[p];
        }
        found[i] = following;
    }
}

/* The change of the residual from the last iterate to this one, relative to the change of the iterate. */
static inline double fm_slope(const double *s, const double *r, const double *s_before, const double *r_before, int n)
{
    double length, step, change;
    length = 0.0;
    step = 0.0;
    change = 0.0;
    for (int i = 0; i < n; i++) {
        length += s[i] * s[i];
        step += (s[i] - s_before[i]) * (s[i] - s_before[i]);
        change += (r[i] - r_before[i]) * (r[i] - r_before[i]);
    }
    if (sqrt(step) > FM_LEAST_STEP * (1.0 + sqrt(length))) {
        return sqrt(change) / sqrt(step);
    }
    return INFINITY;
}

/* fmimaster/numerics/step_sizes.py */

/* No step is shorter than this fraction of a usual step, if that can be avoided. */
#define FM_SLIVER 1e-09

/* A time start + k * step that was computed with doubles is wrong by less: by at most 1 for the step, which is a double near the decimal that was meant, and by at most a half each for the start, the product and the sum. */
#define FM_ULPS 4

/* A step is shorter than proposed if it is shorter by more than this fraction. */
#define FM_SHORTENED 1e-09

#define FM_LEAST_POWER 1e-300

/* Powers outside are noted: nearer to the limits of floats, Python raises an exception and C does not. */
#define FM_MOST_POWER 1e+300

/* Add the part i of an error: sums[0] is the sum of squares, sums[1] the largest size, worst[0] the part that has it. */
static inline void fm_add_part(double part, double size, int i, double *sums, int *worst)
{
    sums[0] += part * part;
    if (size > sums[1] || isnan(part)) {
        sums[1] = size;
        worst[0] = i;
    }
}

/* The distance of two numbers in units of a tolerance, which is relative to the larger one. */
static inline double fm_distance(double a, double b, double absolute, double relative)
{
    double size;
    size = fabs(b) > fabs(a) ? fabs(b) : fabs(a);
    return fabs(a - b) / (absolute + relative * size);
}

/* A power; is_odd[0] becomes 1 if it is near the limits of floats. */
static inline double fm_power(double base, double exponent, int *is_odd)
{
    double found;
    found = pow(base, exponent);
    if (!(found > FM_LEAST_POWER && found < FM_MOST_POWER)) {
        is_odd[0] = 1;
    }
    return found;
}

/* The factor on the step size by the last three errors of an estimator, the newest first, and their exponents. */
static inline double fm_by_errors(double safety, double e1, double e2, double e3, double x1, double x2, double x3, int *is_odd)
{
    double factor;
    factor = safety * fm_power(e1, x1, is_odd) * fm_power(e2, x2, is_odd);
    if (x3 != 0.0) {
        factor = factor * fm_power(e3, x3, is_odd);
    }
    return factor;
}

/* The factor by the last three proposed steps in s, the newest first, and the exponents of their quotients. */
static inline double fm_by_sizes(double h, double h1, double h2, double a1, double a2, int *is_odd)
{
    return fm_power(h / h1, a1, is_odd) * fm_power(h1 / h2, a2, is_odd);
}

/* The nearest number within limits. */
static inline double fm_within(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* The next step size in s before its limits, after a step of this length for which h was proposed. */
static inline double fm_wanted_size(double h, double length, double factor)
{
    if (length < h * (1.0 - FM_SHORTENED)) {
        return !(factor < 1.0) && h > length * factor ? h : length * factor;
    }
    return h * factor;
}

/* Whether the error of a step is above the limit, and the step longer than the smallest one. */
static inline int fm_may_be_repeated(double error, double limit, double length, double smallest)
{
    return error > limit && length > smallest * (1.0 + FM_SHORTENED);
}

/* The longest step in s after one of a length in s, which is 0 after an event: then this part of the full size. */
static inline double fm_longest_step(double previous, double first, double growth, double size)
{
    return previous != 0.0 ? growth * previous : first * size;
}

/* Whether the step after one of this length has the full size, as the one after the previous one had. */
static inline int fm_has_full_size(double previous, double length, double growth, double size)
{
    return previous != 0.0 && growth * length >= size && growth * previous >= size;
}

/* fmimaster/numerics/runge_kutta.py */

#define FM_STAGES 7

/* It has no weight inside the step. */
#define FM_IDLE_STAGE 1

static const double FM_STAGE_NODES[7] = {0.0, 0.2, 0.3, 0.8, 0.8888888888888888, 1.0, 1.0};

/* Of each stage: weights of the stages before it; those of the last one give the result of order 5. */
static const double FM_STAGE_WEIGHTS[7][6] = {{0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, {0.2, 0.0, 0.0, 0.0, 0.0, 0.0}, {0.075, 0.225, 0.0, 0.0, 0.0, 0.0}, {0.9777777777777777, -3.7333333333333334, 3.5555555555555554, 0.0, 0.0, 0.0}, {2.9525986892242035, -11.595793324188385, 9.822892851699436, -0.2908093278463649, 0.0, 0.0}, {2.8462752525252526, -10.757575757575758, 8.906422717743473, 0.2784090909090909, -0.2735313036020583, 0.0}, {0.09114583333333333, 0.0, 0.44923629829290207, 0.6510416666666666, -0.322376179245283, 0.13095238095238096}};

/* Of the difference of the results of order 5 and 4. */
static const double FM_ERROR_WEIGHTS[7] = {0.0012326388888888888, 0.0, -0.0042527702905061394, 0.03697916666666667, -0.05086379716981132, 0.0419047619047619, -0.025};

/* Of each stage: coefficients of its weight as a polynomial inside the step, of order 4. */
static const double FM_DENSE[7][4] = {{1.0, -2.8535800653862835, 3.0717434641059005, -1.1270175653862835}, {0.0, 0.0, 0.0, 0.0}, {0.0, 4.023133379230305, -6.249321565289, 2.675424484351598}, {0.0, -3.7324019615885042, 10.068970589843675, -5.685526961588504}, {0.0, 2.5548038301849423, -6.399112377351017, 3.5219323679207912}, {0.0, -1.3744241142186024, 3.272657752246729, -1.7672812570757455}, {0.0, 1.3824689317781436, -3.764937863556287, 2.382468931778144}};

#define FM_SAFETY 0.9

#define FM_LEAST_FACTOR 0.2

/* Of one step length to the next. */
#define FM_MOST_FACTOR 10.0

/* A step that would leave less than a tenth of itself to the end goes to the end. */
#define FM_STRETCH 1.1

#define FM_FIRST_SHARE 0.01

#define FM_LEAST_NORM 1e-05

/* Of the first step; the last one in s. */
#define FM_SHORTEST_FIRST 1e-06

/* Fixed steps may be longer than the given size by this share, so that rounding does not add one. */
#define FM_SLACK 1e-09

/* A shorter step, relative to the time, is lost in rounding. */
#define FM_FEWEST_ULPS 3.552713678800501e-15

/* Sum of the slopes of n stages, from the first to the last; those with the weight 0 are left out. Slopes are a stride apart. */
static inline double fm_weighted_sum(const double *weights, int n, const double *slopes, int stride)
{
    double total;
    total = weights[0] * slopes[0];
    for (int k = 1; k < n; k++) {
        if (weights[k] != 0.0) {
            total += weights[k] * slopes[k * stride];
        }
    }
    return total;
}

/* Weight of a stage at a part of the last step, which had this length in s. */
static inline double fm_dense_weight(int stage, double part, double length)
{
    return length * (part * (FM_DENSE[stage][0] + part * (FM_DENSE[stage][1] + part * (FM_DENSE[stage][2] + part * FM_DENSE[stage][3]))));
}

/* The first step in s, so short that it changes the states by a hundredth at most; both in units of the tolerance. */
static inline double fm_first_length(double states, double slopes)
{
    int is_known;
    is_known = states > FM_LEAST_NORM && slopes > FM_LEAST_NORM;
    return is_known ? FM_FIRST_SHARE * states / slopes : FM_SHORTEST_FIRST;
}

/* The length of a step in s with that rest to the end: all of it, half of it, or what is wanted. */
static inline double fm_next_length(double rest, double wanted)
{
    if (rest <= FM_STRETCH * wanted) {
        return rest;
    }
    return rest < 2.0 * wanted ? 0.5 * rest : wanted;
}

/* The factor on the length by the error of a step, in units of the tolerance. */
static inline double fm_length_factor(double error, double most)
{
    return error == 0.0 ? most : FM_SAFETY * pow(error, -0.2);
}

/* The length in s with which a step is tried again. */
static inline double fm_shorter_length(double length, double factor)
{
    return length * larger(FM_LEAST_FACTOR, factor);
}

/* Whether a step is lost in rounding. */
static inline int fm_is_lost(double length, double time, double end)
{
    return length < FM_FEWEST_ULPS * larger(fabs(time), fabs(end));
}

/* The length in s that is wanted for the next step, after one of this length. */
static inline double fm_grown_length(double length, double wanted, double factor, double most)
{
    double grown;
    grown = length * smaller(larger(FM_LEAST_FACTOR, factor), most);
    return length < wanted ? larger(wanted, grown) : grown;
}

#endif

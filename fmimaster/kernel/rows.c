/* What is looked for in all rows of Float64 values: ranges, and changes within steps. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel.h"
#include "portable.h"

/* Narrow rows are looked at side by side, so that at least so many values are independent of each other. */
enum { ABREAST = 16 };

/* NAN has no say. */
static inline double lower(double low, double value)
{
    return value < low ? value : low;
}

static inline double higher(double high, double value)
{
    return value > high ? value : high;
}

/* One row. */
static void add_row(const fm_ranges *r, const double *row, const double *before, int is_later)
{
    for (size_t j = 0; j < r->width; j++) {
        double change = row[j] - before[j];
        r->low[j] = lower(r->low[j], row[j]);
        r->high[j] = higher(r->high[j], row[j]);
        r->squares[j] += is_later ? change * change : row[j] * 0.0; /* NAN for NAN and infinity */
    }
}

/* n times so many values, one behind the other, each later than the one that is `width` before it. */
FM_VECTORS static void add_values(const double *values, size_t n, size_t lanes, size_t width, double *restrict low,
                                  double *restrict high, double *restrict squares)
{
    for (size_t i = 0; i < n; i++, values += lanes) {
        const double *before = values - width;
        for (size_t j = 0; j < lanes; j++) {
            double change = values[j] - before[j];
            low[j] = lower(low[j], values[j]);
            high[j] = higher(high[j], values[j]);
            squares[j] += change * change;
        }
    }
}

/* Rows that are all later than the one before them, which lies before the first one. */
static void add_rows(const fm_ranges *r, const double *rows, size_t n)
{
    double low[2 * ABREAST], high[2 * ABREAST], squares[2 * ABREAST];
    size_t width = r->width, abreast = (ABREAST + width - 1) / width, lanes = abreast * width, groups = n / abreast;
    if (abreast == 1 || !groups) {
        add_values(rows, n, width, width, r->low, r->high, r->squares);
        return;
    }
    for (size_t j = 0; j < lanes; j++) {
        low[j] = INFINITY;
        high[j] = -INFINITY;
        squares[j] = 0.0;
    }
    add_values(rows, groups, lanes, width, low, high, squares);
    for (size_t j = 0, column = 0; j < lanes; j++, column = column + 1 == width ? 0 : column + 1) {
        r->low[column] = lower(r->low[column], low[j]);
        r->high[column] = higher(r->high[column], high[j]);
        r->squares[column] += squares[j];
    }
    add_values(rows + groups * lanes, n - groups * abreast, width, width, r->low, r->high, r->squares);
}

/* What is known of a group. Returns how many of its rows are later than the row before. */
static int64_t add_group(const fm_ranges *r, size_t group)
{
    const fm_looked *l = r->looked;
    for (size_t j = 0, at = group * r->width; j < r->width; j++, at++) {
        r->low[j] = lower(r->low[j], l->low[at]);
        r->high[j] = higher(r->high[j], l->high[at]);
        r->squares[j] += l->squares[at];
    }
    return l->later[group];
}

int64_t fm_look_at_rows(fm_ranges r, const double *times, const double *rows, size_t n, const int64_t *starts, size_t n_parts)
{
    int64_t later = 0;
    size_t groups = r.looked ? (size_t)fm_acquire(&r.looked->n) : 0;
    size_t offset = r.looked ? (size_t)(rows - r.looked->rows) / r.width : 0; /* in the block */
    for (size_t part = 0; part < n_parts; part++, r.low += r.width, r.high += r.width) {
        size_t i = (size_t)starts[part], end = part + 1 < n_parts ? (size_t)starts[part + 1] : n;
        const double *before = i ? rows + (i - 1) * r.width : r.before;
        for (size_t j = 0; j < r.width; j++) {
            r.low[j] = lower(INFINITY, before[j]);
            r.high[j] = higher(-INFINITY, before[j]);
        }
        while (i < end) {
            size_t group = (offset + i) / FM_GROUP, others = (offset + i) % FM_GROUP;
            size_t stop = group + 1 < groups && end - i > FM_GROUP - others ? i + FM_GROUP - others : end;
            if (!others && group && group < groups && end - i >= FM_GROUP) {
                later += add_group(&r, group);
                i += FM_GROUP;
                continue;
            }
            const double *row = rows + i * r.width;
            int is_later = times[i] > (i ? times[i - 1] : r.time_before);
            size_t first = i++;
            if (first && is_later) {
                while (i < stop && times[i] > times[i - 1])
                    i++;
                add_rows(&r, row, i - first);
            } else
                add_row(&r, row, first ? row - r.width : r.before, is_later);
            later += is_later ? (int64_t)(i - first) : 0;
        }
    }
    return later;
}

void fm_look_at_groups(fm_kernel *k)
{
    fm_looked *l = &k->looked;
    while (l->rows && k->n_rows / FM_GROUP > l->n) {
        size_t first = (size_t)l->n * FM_GROUP, at = (size_t)l->n * l->width;
        const double *rows = l->rows + first * l->width;
        const int64_t start = 0;
        memset(l->squares + at, 0, l->width * sizeof(double));
        l->later[l->n] = fm_look_at_rows((fm_ranges){l->width, rows - l->width, k->times[first - 1], l->low + at, l->high + at,
                                                     l->squares + at, 0},
                                         k->times + first, rows, FM_GROUP, &start, 1);
        fm_publish(&l->n, l->n + 1);
    }
}

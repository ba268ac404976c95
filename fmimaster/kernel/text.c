/* Numbers as text, and text as numbers: rows of CSV files. Doubles get the digits that Python's repr gives them. */
#include <stddef.h>
#include <stdint.h>
#include "kernel.h"
#include "portable.h"
#include <string.h>

enum { FRACTION = 52, BIAS = 1075, EXPONENTS = 0x7FF };
static const uint64_t HIDDEN = (uint64_t)1 << FRACTION;

/* Powers of ten as Python has computed them: 10^k / 2^(floor(log2(10^k)) - 127) in two halves, the high one first. Those from
 * 10^0 to 10^FM_LARGEST_EXACT_POWER are exact, smaller ones are rounded up, larger ones down. */
static const uint64_t *power_of_ten(const uint64_t *powers, int k)
{
    return powers + 2 * (k - FM_LEAST_POWER);
}

/* floor(log2(10^k)) */
static int log2_of_ten(int k)
{
    return (k * 1741647) >> 19;
}

/* g * c / 2^128 for a g of two halves, of which the last bit is set if anything was cut off. */
static uint64_t scaled(uint64_t upper, uint64_t lower, uint64_t c)
{
    uint64_t high, carried, middle = fm_product(upper, c, &high);
    fm_product(lower, c, &carried);
    middle += carried;
    high += middle < carried;
    return high | (middle > 1);
}

/* The shortest decimal digits * 10^*power that are read back as c * 2^q, of them those nearest to it; `irregular` if the
 * next smaller number is nearer than the next larger one.
 *
 * Source: Giulietti (2020), The Schubfach way to render doubles. */
static uint64_t shortest(uint64_t c, int q, int irregular, const uint64_t *powers, int *power)
{
    int k = (q * 1262611 - (irregular ? 524031 : 0)) >> 22, h = q + log2_of_ten(-k) + 1, odd = c & 1;
    const uint64_t *p = power_of_ten(powers, -k);
    uint64_t g0 = p[1] + (-k > FM_LARGEST_EXACT_POWER), g1 = p[0] + (g0 < p[1]); /* rounded up */
    uint64_t lower = scaled(g1, g0, (4 * c - 2 + (uint64_t)irregular) << h) + (uint64_t)odd;
    uint64_t middle = scaled(g1, g0, (4 * c) << h);
    uint64_t upper = scaled(g1, g0, (4 * c + 2) << h) - (uint64_t)odd;
    uint64_t s = middle / 4, tens = s / 10;
    int below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
    *power = k + 1;
    if (s >= 10 && below != above)
        return tens + (uint64_t)above;
    *power = k;
    below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    if (below != above)
        return s + (uint64_t)above;
    return s + (middle > 4 * s + 2 || (middle == 4 * s + 2 && s % 2));
}

/* The decimal digits of a number, without zeros at its end, for each of which *power grows by one. Returns how many. */
static int digits_of(uint64_t n, int *power, char *digits)
{
    char reversed[20];
    int count = 0;
    for (; n && n % 10 == 0; n /= 10)
        ++*power;
    for (; n >= 100; n /= 100, count += 2) {
        unsigned two = (unsigned)(n % 100);
        reversed[count] = (char)('0' + two % 10);
        reversed[count + 1] = (char)('0' + two / 10);
    }
    for (; n; n /= 10)
        reversed[count++] = (char)('0' + n % 10);
    for (int i = count; i > 0; i--)
        *digits++ = reversed[i - 1];
    return count;
}

static char *put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}

static char *put_zeros(char *to, int n)
{
    memset(to, '0', (size_t)n);
    return to + n;
}

/* n digits as Python writes a float, the point behind the first `point` of them. */
static char *put_digits(char *to, const char *digits, int n, int point, int has_exponent)
{
    if (!has_exponent && point <= 0)
        return put(put_zeros(put(to, "0.", 2), -point), digits, (size_t)n);
    if (!has_exponent && n <= point)
        return put(put_zeros(put(to, digits, (size_t)n), point - n), ".0", 2);
    int before = has_exponent ? 1 : point, exponent = point - 1;
    to = put(to, digits, (size_t)before);
    if (n > before) {
        *to++ = '.';
        to = put(to, digits + before, (size_t)(n - before));
    }
    if (!has_exponent)
        return to;
    to = put(to, exponent < 0 ? "e-" : "e+", 2);
    exponent = exponent < 0 ? -exponent : exponent;
    if (exponent >= 100)
        *to++ = (char)('0' + exponent / 100);
    *to++ = (char)('0' + exponent / 10 % 10);
    *to++ = (char)('0' + exponent % 10);
    return to;
}

static char *put_double(char *to, double value, const uint64_t *powers)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> FRACTION & EXPONENTS), power;
    uint64_t c = bits & (HIDDEN - 1);
    if (exponent == EXPONENTS && c)
        return put(to, "nan", 3);
    if (bits >> 63)
        *to++ = '-';
    if (exponent == EXPONENTS)
        return put(to, "inf", 3);
    if (!exponent && !c)
        return put(to, "0.0", 3);
    int irregular = !c && exponent > 1;
    c = exponent ? c | HIDDEN : c;
    uint64_t n = shortest(c, (exponent ? exponent : 1) - BIAS, irregular, powers, &power);
    char digits[20];
    int count = digits_of(n, &power, digits), point = count + power;
    return put_digits(to, digits, count, point, point < -3 || point > 16);
}

static char *put_integer(char *to, int64_t value)
{
    char digits[20];
    int power = 0;
    if (value < 0)
        *to++ = '-';
    else if (!value)
        *to++ = '0';
    int n = digits_of(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, &power, digits);
    return put_zeros(put(to, digits, value ? (size_t)n : 0), power);
}

size_t fm_write_rows(const fm_cells *columns, int n_columns, size_t n_rows, const uint64_t *powers, char *text)
{
    char *to = text;
    for (size_t row = 0; row < n_rows; row++) {
        for (int i = 0; i < n_columns; i++) {
            const fm_cells *column = &columns[i];
            const char *value = column->values + (int64_t)row * column->stride;
            if (column->type == FM_FLOAT64) {
                double d;
                memcpy(&d, value, sizeof d);
                to = put_double(to, d, powers);
            } else {
                int64_t n;
                memcpy(&n, value, sizeof n);
                to = put_integer(to, n);
            }
            *to++ = i + 1 < n_columns ? ',' : '\n';
        }
    }
    return (size_t)(to - text);
}

/* The double nearest to n * 10^k; 0 if that takes more than these powers to decide.
 *
 * Source: Lemire (2021), Number parsing at a gigabyte per second; by an idea of Eisel (2020). */
static int nearest(uint64_t n, int k, const uint64_t *powers, uint64_t *bits)
{
    *bits = 0;
    if (!n)
        return 1;
    if (k < FM_LEAST_POWER || k > 308)
        return 0;
    int zeros = fm_leading_zeros(n);
    n <<= zeros;
    const uint64_t *p = power_of_ten(powers, k);
    uint64_t high, low = fm_product(n, p[0], &high);
    if ((high & 0x1FF) == 0x1FF) {
        uint64_t carried;
        fm_product(n, p[1], &carried);
        low += carried;
        high += low < carried;
    }
    if (low == UINT64_MAX && (k < -27 || k > FM_LARGEST_EXACT_POWER))
        return 0;
    int upper = (int)(high >> 63), shift = upper + 64 - FRACTION - 3;
    uint64_t m = high >> shift;
    int exponent = log2_of_ten(k) + 63 + upper - zeros + 1023;
    if (exponent <= 0) { /* no normal number */
        if (1 - exponent >= 64)
            return 1;
        m >>= 1 - exponent;
        *bits = (m + (m & 1)) >> 1; /* the smallest normal number has the bits that follow those of the largest of these */
        return 1;
    }
    if (low <= 1 && k >= -4 && k <= 23 && (m & 3) == 1 && m << shift == high)
        m &= ~(uint64_t)1; /* exactly between two doubles: the even one */
    m = (m + (m & 1)) >> 1;
    if (m >= 2 * HIDDEN) {
        m = HIDDEN;
        exponent++;
    }
    if (exponent >= EXPONENTS)
        return 0;
    *bits = (uint64_t)exponent << FRACTION | (m & (HIDDEN - 1));
    return 1;
}

/* Read digits behind a number; how many there were. */
static int more_digits(const char **at, uint64_t *n)
{
    const char *begin = *at;
    for (; **at >= '0' && **at <= '9'; ++*at)
        *n = *n * 10 + (uint64_t)(**at - '0');
    return (int)(*at - begin);
}

/* A number that is followed by another character. Returns 0 if it is not a plain one. */
static int number(const char **at, const uint64_t *powers, double *value)
{
    uint64_t n = 0, exponent = 0, bits;
    int negative = **at == '-', power = 0;
    if (negative || **at == '+')
        ++*at;
    while (**at == '0' && (*at)[1] >= '0' && (*at)[1] <= '9')
        ++*at;
    int digits = more_digits(at, &n), leading = digits == 1 && !n;
    if (**at == '.') {
        ++*at;
        const char *begin = *at;
        while (!n && **at == '0')
            ++*at;
        power = -(int)(*at - begin);
        int after = more_digits(at, &n);
        power -= after;
        leading = leading || (int)(*at - begin) > after;
        digits += after;
    }
    if (!(digits || leading) || digits - leading > 19)
        return 0;
    if (**at == 'e' || **at == 'E') {
        int minus = *++*at == '-';
        if (minus || **at == '+')
            ++*at;
        int size = more_digits(at, &exponent);
        if (size < 1 || size > 4)
            return 0;
        power += minus ? -(int)exponent : (int)exponent;
    }
    if (!nearest(n, power, powers, &bits))
        return 0;
    bits |= (uint64_t)negative << 63;
    memcpy(value, &bits, sizeof bits);
    return 1;
}

size_t fm_read_rows(const char *text, int n_columns, size_t n_rows, const uint64_t *powers, double *values, size_t *used)
{
    const char *at = text;
    size_t row = 0;
    for (*used = 0; row < n_rows && *at; *used = (size_t)(at - text)) {
        if (*at == '\n' || (*at == '\r' && at[1] == '\n')) { /* an empty line */
            at += *at == '\r' ? 2 : 1;
            continue;
        }
        for (int i = 0; i < n_columns; i++) {
            while (*at == ' ')
                at++;
            if (!number(&at, powers, values++))
                return row;
            while (*at == ' ')
                at++;
            if (i + 1 < n_columns ? *at != ',' : *at != '\n' && (*at != '\r' || at[1] != '\n'))
                return row;
            at += *at == '\r' ? 2 : 1;
        }
        row++;
    }
    return row;
}

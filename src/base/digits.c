#include "base/digits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4, DIGITS_UNKNOWN = 3 };

/* Never so high that nothing of the number is left. */
int digits_last(double number, double low, double high)
{
    int first = (int)floor(log10(fabs(number)) + 1e-9);
    int most = first - DIGITS + 1, last = first - DIGITS_UNKNOWN + 1;
    if (isfinite(low) && isfinite(high) && high > 0 && high > low)
        last = (int)floor(log10((high - low) / 6));
    last = last < most ? most : last;
    return last > first ? first : last;
}

void digits_put(double number, int last, int unit, char text[32])
{
    double step = pow(10, last);
    int decimals = unit > last ? unit - last : 0;
    snprintf(text, 32, "%.*f", decimals, round(number / step) * step / pow(10, unit));
}

const char *digits_of(double number, double low, double high, char text[32])
{
    if (isfinite(number) && number > 0)
        digits_put(number, digits_last(number, low, high), 0, text);
    else
        strcpy(text, number < 0 || !isfinite(number) ? "-" : "0");
    return text;
}

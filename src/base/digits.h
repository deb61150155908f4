/* base/digits: numbers with no more digits than their intervals support. Pure; any thread. */
#pragma once

/* "1.97": the last digit is worth at least a sixth of [low, high], whose middle or end the number
 * is, and there are four at most. high 0, not more than low, or no number: the interval is not
 * known, as of one sample, and there are three. "0" for 0, "-" for less and for what is no number.
 * Returns `text`. */
const char *digits_of(double number, double low, double high, char text[32]);

/* The power of ten of that last digit, of a number above 0. */
int digits_last(double number, double low, double high);
/* Rounded to it, in units of 10^unit. */
void digits_put(double number, int last, int unit, char text[32]);

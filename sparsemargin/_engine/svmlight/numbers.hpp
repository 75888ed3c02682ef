// Parsing of integers and reals with the syntax of Python's int() and float().
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

// Clang's standard library can parse doubles from version 20 on.
#ifndef __cpp_lib_to_chars
#define SM_STRTOD
#endif
#ifdef SM_STRTOD
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

#include "text.hpp"

namespace sparsemargin {

// Python's default limit for the number of digits of an int.
constexpr int64_t LONGEST_NUMBER = 4300;

constexpr int64_t LARGEST_INT64 = std::numeric_limits<int64_t>::max();

// Returns whether the underscore at `at` is between two digits, where Python allows it.
inline bool joins_digits(Token token, const char *at) {
    return at > token.start && at + 1 < token.stop && is_digit(at[-1]) && is_digit(at[1]);
}

enum class Integer { good, malformed, too_small, too_large };

// A 64-bit integer; a sign, leading zeros and underscores between digits are allowed.
inline Integer read_integer(Token token, int64_t &value) {
    const char *p = token.start;
    const bool negative = p < token.stop && *p == '-';
    if (p < token.stop && (*p == '-' || *p == '+')) ++p;
    if (p == token.stop) return Integer::malformed;
    int64_t sum = 0;  // kept negative, because the negative range has one more number
    bool fits = true;
    for (; p < token.stop; ++p) {
        if (*p == '_' && joins_digits(token, p)) continue;
        if (!is_digit(*p)) return Integer::malformed;
        fits = fits && !__builtin_mul_overflow(sum, 10, &sum)
               && !__builtin_sub_overflow(sum, *p - '0', &sum);
    }
    if (!negative) fits = fits && !__builtin_sub_overflow(int64_t{0}, sum, &sum);
    value = sum;
    return fits ? Integer::good : negative ? Integer::too_small : Integer::too_large;
}

inline bool is_word(Token token, const char *lower) {
    const char *p = token.start;
    for (; p < token.stop && *lower; ++p, ++lower) {
        if ((*p | 0x20) != *lower) return false;
    }
    return p == token.stop && !*lower;
}

// A decimal number without sign and underscores; `point` is the position of the decimal point.
struct Decimal {
    char text[LONGEST_NUMBER];
    int64_t size = 0;
    int64_t point = 0;
    int64_t exponent_at = 0;
};

// Copies the text after the sign; false if float() would reject it.
inline bool read_decimal(Token token, Decimal &decimal) {
    enum { WHOLE, FRACTION, EXPONENT_SIGN, EXPONENT } part = WHOLE;
    int64_t digits = 0;
    for (const char *p = token.start; p < token.stop; ++p) {
        if (*p == '_' && joins_digits(token, p)) continue;
        if (is_digit(*p)) {
            if (part == EXPONENT_SIGN) part = EXPONENT;
            ++digits;
        } else if (*p == '.' && part == WHOLE) {
            part = FRACTION;
            decimal.point = decimal.size;
        } else if ((*p | 0x20) == 'e' && part <= FRACTION && digits) {
            if (part == WHOLE) decimal.point = decimal.size;
            part = EXPONENT_SIGN;
            decimal.exponent_at = decimal.size;
            digits = 0;
        } else if (part != EXPONENT_SIGN || (p[-1] | 0x20) != 'e' || (*p != '-' && *p != '+')) {
            return false;
        }
        decimal.text[decimal.size++] = *p;
    }
    if (part == WHOLE) decimal.point = decimal.size;
    if (part <= FRACTION) decimal.exponent_at = decimal.size;
    return digits > 0;
}

// Returns whether a number outside the range of double is too large, as opposed to too small.
inline bool is_huge(const Decimal &decimal) {
    int64_t first = 0;  // first nonzero digit, which exists because 0 is within range
    while (decimal.text[first] == '0' || decimal.text[first] == '.') ++first;
    int64_t power = decimal.point - first;
    int64_t at = decimal.exponent_at + 1, exponent = 0;
    const bool negative = at < decimal.size && decimal.text[at] == '-';
    at += at < decimal.size && !is_digit(decimal.text[at]);
    for (; at < decimal.size && exponent < 1000000; ++at) {
        exponent = 10 * exponent + (decimal.text[at] - '0');
    }
    return power + (negative ? -exponent : exponent) > 0;
}

// The nearest double of a number without a sign. False if it is out of range and the library
// reports that.
inline bool read_nearest(const char *start, const char *stop, double &value) {
#ifndef SM_STRTOD
    return std::from_chars(start, stop, value).ec != std::errc::result_out_of_range;
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    value = strtod_l(std::string(start, stop).c_str(), nullptr, plain);
    return true;
#endif
}

// The nearest double of at most LONGEST_NUMBER characters; infinite or NaN as in float(). False if
// float() would reject the token.
[[gnu::noinline]] inline bool read_real(Token token, double &value) {
    const bool negative = token.size() && *token.start == '-';
    if (token.size() && (*token.start == '-' || *token.start == '+')) ++token.start;
    Decimal decimal;
    if (is_word(token, "inf") || is_word(token, "infinity")) {
        value = std::numeric_limits<double>::infinity();
    } else if (is_word(token, "nan")) {
        value = std::numeric_limits<double>::quiet_NaN();
    } else if (!read_decimal(token, decimal)) {
        return false;
    } else if (!read_nearest(decimal.text, decimal.text + decimal.size, value)) {
        value = is_huge(decimal) ? std::numeric_limits<double>::infinity() : 0.0;
    }
    if (negative) value = -value;
    return true;
}

}  // namespace sparsemargin

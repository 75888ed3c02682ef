// Integers and reals as Python's int() and float() read them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

// Clang's library reads doubles from version 20 on.
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

// Python's own limit for the digits of an int.
constexpr int64_t LONGEST_NUMBER = 4300;

constexpr int64_t LARGEST_INT64 = std::numeric_limits<int64_t>::max();

// Whether the underscore at `at` stands between two digits, where Python allows one.
inline bool joins_digits(Token token, const char *at) {
    return at > token.start && at + 1 < token.stop && is_digit(at[-1]) && is_digit(at[1]);
}

enum class Integer { good, malformed, too_small, too_large };

// An integer of at most 64 bits: sign, leading zeros and underscores between digits are allowed.
inline Integer read_integer(Token token, int64_t &value) {
    const char *p = token.start;
    const bool negative = p < token.stop && *p == '-';
    if (p < token.stop && (*p == '-' || *p == '+')) ++p;
    if (p == token.stop) return Integer::malformed;
    int64_t sum = 0;  // below 0 throughout, where one number more fits
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

// A decimal number without sign and underscores; the point stands at `point`, or would.
struct Decimal {
    char text[LONGEST_NUMBER];
    int64_t size = 0;
    int64_t point = 0;
    int64_t exponent_at = 0;
};

// Copies what is written between sign and end; false where float() would refuse it.
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

// Whether a decimal number that is no double lies above them all, not below.
inline bool is_huge(const Decimal &decimal) {
    int64_t first = 0;  // of the digits that are not 0: there is one, since 0 is a double
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

// The nearest double of a number without a sign; false, and no double, where it may be told that
// there is none.
inline bool read_nearest(const char *start, const char *stop, double &value) {
#ifndef SM_STRTOD
    return std::from_chars(start, stop, value).ec != std::errc::result_out_of_range;
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    value = strtod_l(std::string(start, stop).c_str(), nullptr, plain);
    return true;
#endif
}

// The nearest double of at most LONGEST_NUMBER characters, infinite or NaN where float() says
// so; false where it would refuse the token.
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

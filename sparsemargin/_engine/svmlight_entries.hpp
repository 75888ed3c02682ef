// One entry of a row, "index:value".
//
// The usual one, digits and a colon and a decimal number within 32 bytes, is read without a branch
// on its length; everything else goes by the plain way, one character after the other.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "svmlight_failure.hpp"
#include "svmlight_numbers.hpp"
#include "svmlight_text.hpp"

namespace sparsemargin {

inline bool likely(bool condition) { return __builtin_expect(condition, true); }

// --- The usual entry -------------------------------------------------------------------------

// The number that `count` digits, 1 to 8, make up; the word's other bytes don't matter.
inline uint64_t number_of(uint64_t word, int64_t count) {
    word = (word << (64 - 8 * count)) & 0x0F0F0F0F0F0F0F0F;
    word = (word * 2561) >> 8;
    word = ((word & 0x00FF00FF00FF00FF) * 6553601) >> 16;
    return ((word & 0x0000FFFF0000FFFF) * 42949672960001) >> 32;
}

inline constexpr uint64_t WHOLE_POWERS_OF_TEN[] = {1,      10,      100,      1000,     10000,
                                                  100000, 1000000, 10000000, 100000000};

// The same for 1 to 19 digits, from the ninth on at `rest`.
inline uint64_t number_of(uint64_t word, const char *rest, int64_t count) {
    uint64_t number = number_of(word, std::min<int64_t>(count, 8));
    for (; count > 8; rest += 8) {
        count -= 8;
        const int64_t more = std::min<int64_t>(count, 8);
        number = number * WHOLE_POWERS_OF_TEN[more] + number_of(load_word(rest), more);
    }
    return number;
}

struct Marks {
    uint64_t others;  // bit i: byte i of 32 is no digit; the bits from 32 on are set
    uint64_t minus;   // bit i: byte i, of the first 16, is a minus
};

#ifdef __SSE2__
inline Marks marks_of(const char *p) {
    const __m128i zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9), minus = _mm_set1_epi8('-');
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + 16));
    const __m128i a = _mm_sub_epi8(low, zero), b = _mm_sub_epi8(high, zero);
    const uint64_t digits_a = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(a, nine), a));
    const uint64_t digits_b = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(b, nine), b));
    const uint64_t minuses = _mm_movemask_epi8(_mm_cmpeq_epi8(low, minus));
    return {~(digits_a | digits_b << 16), minuses};
}
#else
// One bit for each byte of a word whose highest bit is set.
inline uint64_t high_bits(uint64_t word) {
    return ((word & 0x8080808080808080) >> 7) * 0x0102040810204080 >> 56;
}

inline Marks marks_of(const char *p) {
    uint64_t others = ~uint64_t{0} << 32, minuses = 0;
    for (int at = 0; at < 32; at += 8) {
        const uint64_t digit = load_word(p + at) ^ 0x3030303030303030;
        const uint64_t minus = load_word(p + at) ^ 0x2D2D2D2D2D2D2D2D;
        // The highest bit of each byte: whether it is above 9, whether it is not 0.
        const uint64_t above = ((digit & 0x7F7F7F7F7F7F7F7F) + 0x7676767676767676) | digit;
        const uint64_t unlike = ((minus & 0x7F7F7F7F7F7F7F7F) + 0x7F7F7F7F7F7F7F7F) | minus;
        others |= high_bits(above) << at;
        minuses |= high_bits(~unlike) << at;
    }
    return {others, minuses};
}
#endif

inline constexpr double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t LARGEST_EXACT_POWER = 22;
constexpr uint64_t LARGEST_EXACT = uint64_t{1} << 53;  // of the integers in doubles

constexpr int64_t MOST_INDEX_DIGITS = 14;  // so that a minus stands within 16 bytes
constexpr int64_t MOST_WHOLE_DIGITS = 7;   // so that the point stands within 8 bytes of the value
constexpr int64_t MOST_DIGITS = 19;        // of the value, so that they fit 64 bits

// The eight digits from `start` on, without the point that follows the first `whole`.
inline uint64_t load_pointless(const char *start, int64_t whole) {
    const uint64_t before = (uint64_t{1} << 8 * whole) - 1;
    return (load_word(start) & before) | (load_word(start + 1) & ~before);
}

// Adds an exponent of at most three digits to `power`; null where something else follows.
inline const char *add_exponent(const char *p, int64_t &power) {
    if ((*p++ | 0x20) != 'e') return nullptr;
    const bool negative = *p == '-';
    p += negative || *p == '+';
    const char *start = p;
    int64_t exponent = 0;
    while (is_digit(*p) && p < start + 3) exponent = 10 * exponent + (*p++ - '0');
    power += negative ? -exponent : exponent;
    return p > start && kind_of(p) != TOKEN ? p : nullptr;
}

struct LongValue {
    double value;
    const char *stop;
};

// The value of a mantissa that is large or is followed, at `stop`, by an exponent; null where
// neither one operation nor one call gives it.
[[gnu::noinline]] inline LongValue long_value(const char *start, const char *stop,
                                              uint64_t mantissa, int64_t fraction) {
    int64_t power = -fraction;
    if (kind_of(stop) == TOKEN) stop = add_exponent(stop, power);
    if (!stop) return {0, nullptr};
    double value = static_cast<double>(static_cast<int64_t>(mantissa));
    if (mantissa <= LARGEST_EXACT && std::abs(power) <= LARGEST_EXACT_POWER) {
        return {power > 0 ? value * POWERS_OF_TEN[power] : value / POWERS_OF_TEN[-power], stop};
    }
    if (power != -fraction) return {0, nullptr};
    std::from_chars(start, stop, value);
    return {value, stop};
}

[[gnu::noinline]] inline uint64_t long_index(const char *p, int64_t count) {
    return number_of(load_word(p), p + 8, count);
}

struct Parsed {
    int64_t index;
    double value;
    const char *stop;
};

// Reads an entry of the usual look, whose value is within the floats too; any other one leaves a
// null `stop`.
inline Parsed usual_entry(const char *p) {
    const Marks marks = marks_of(p);
    uint64_t others = marks.others;
    const int64_t colon = __builtin_ctzll(others);
    if (colon < 1 || colon > MOST_INDEX_DIGITS || p[colon] != ':') return {0, 0, nullptr};
    const uint64_t sign = marks.minus & ((others & -others) << 1);
    others = (others & (others - 1)) ^ sign;
    const char *start = p + colon + 1 + (sign != 0);
    const char *stop = p + __builtin_ctzll(others);
    const int64_t whole = stop - start;
    int64_t fraction = 0;
    if (*stop == '.') {
        others &= others - 1;
        const char *point = stop;
        stop = p + __builtin_ctzll(others);
        fraction = stop - point - 1;
    }
    const int64_t count = whole + fraction;
    if (whole > MOST_WHOLE_DIGITS || count < 1 || count > MOST_DIGITS) return {0, 0, nullptr};
    const uint64_t index = likely(colon <= 8) ? number_of(load_word(p), colon)
                                              : long_index(p, colon);
    const uint64_t mantissa = number_of(load_pointless(start, whole), start + 9, count);
    double value;
    if (likely(kind_of(stop) != TOKEN && mantissa <= LARGEST_EXACT)) {
        value = static_cast<double>(static_cast<int64_t>(mantissa)) / POWERS_OF_TEN[fraction];
    } else {
        const LongValue found = long_value(start, stop, mantissa, fraction);
        value = found.value;
        stop = found.stop;
    }
    return {static_cast<int64_t>(index), sign ? -value : value, stop};
}

// --- Any entry -------------------------------------------------------------------------------

inline void check_no_nul(Token token) {
    if (const char *nul = find(token, '\0')) fail(Code::nul, {nul, nul + 1});
}

[[gnu::noinline]] inline int64_t read_index(Token index, Token token) {
    int64_t value = 0;
    switch (read_integer(index, value)) {
        case Integer::malformed: fail(Code::bad_index, token);
        case Integer::too_small: fail(Code::negative_index, token);
        case Integer::too_large: fail(Code::index_too_large, token);
        case Integer::good: break;
    }
    if (value < 0) fail(Code::negative_index, token);
    return value;
}

// The two sides of the token's first colon.
struct Pair {
    Token before;
    Token after;
};

inline Pair split(Token token) {
    check_no_nul(token);
    const char *colon = find(token, ':');
    const Token before{token.start, colon ? colon : token.stop};
    const Token after{colon ? colon + 1 : token.stop, token.stop};
    if (std::max(before.size(), after.size()) > LONGEST_NUMBER) fail(Code::overlong, token);
    if (!colon) fail(Code::missing_colon, token);
    return {before, after};
}

template <class Value>
bool is_finite(double value) {
    return std::isfinite(static_cast<Value>(value));
}

template <class Value>
[[gnu::noinline]] Parsed any_entry(const char *p) {
    const Token token = token_at(p);
    const Pair pair = split(token);
    const int64_t index = read_index(pair.before, token);
    double value;
    if (!read_real(pair.after, value)) fail(Code::bad_value, token);
    if (!is_finite<Value>(value)) fail(Code::not_finite, token);
    return {index, value, token.stop};
}

// Reads the entry that starts at `p`, a character of a token.
template <class Value>
Parsed read_entry(const char *p) {
    Parsed entry = usual_entry(p);
    if (!entry.stop) entry = any_entry<Value>(p);
    return entry;
}

}  // namespace sparsemargin

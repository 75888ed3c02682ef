// One entry of a row: "index:value", or "name:value" if features are hashed.
//
// The usual entry (digits, a colon and a decimal number within 32 bytes) is parsed without branches
// on its length. All others are parsed character by character.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "numbers.hpp"
#include "text.hpp"

namespace sparsemargin {

inline bool likely(bool condition) { return __builtin_expect(condition, true); }

// --- The usual entry -------------------------------------------------------------------------

// The number given by `count` digits (1 to 8); the other bytes of the word are ignored.
inline uint64_t number_of(uint64_t word, int64_t count) {
    word = (word << (64 - 8 * count)) & 0x0F0F0F0F0F0F0F0F;
    word = (word * 2561) >> 8;
    word = ((word & 0x00FF00FF00FF00FF) * 6553601) >> 16;
    return ((word & 0x0000FFFF0000FFFF) * 42949672960001) >> 32;
}

inline constexpr uint64_t WHOLE_POWERS_OF_TEN[] = {1,      10,      100,      1000,     10000,
                                                  100000, 1000000, 10000000, 100000000};

// The number given by 1 to 19 digits; the digits from the ninth on start at `rest`.
inline uint64_t number_of(uint64_t word, const char *rest, int64_t count) {
    uint64_t number = number_of(word, std::min<int64_t>(count, 8));
    for (; count > 8; rest += 8) {
        count -= 8;
        const int64_t more = std::min<int64_t>(count, 8);
        number = number * WHOLE_POWERS_OF_TEN[more] + number_of(load_word(rest), more);
    }
    return number;
}

// The position of the lowest bit that is set.
inline int64_t lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }

// Bit i refers to byte i; the bits from 32 on are set.
struct Marks {
    uint64_t others;  // the byte is not a digit
    uint64_t ends;    // the byte is whitespace, or another character up to ' '
};

struct Numbers {
    uint64_t first;
    uint64_t second;
};

#ifdef __SSE2__
inline uint64_t high_bits(__m128i low, __m128i high) {
    return static_cast<uint32_t>(_mm_movemask_epi8(low) | _mm_movemask_epi8(high) << 16);
}

inline Marks marks_of(const char *p) {
    const __m128i zero = _mm_set1_epi8('0'), beyond_nine = _mm_set1_epi8(0x80 - 10);
    const __m128i beyond_space = _mm_set1_epi8(0x80 - ' ' - 1);
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + 16));
    const uint64_t others = high_bits(_mm_adds_epu8(_mm_xor_si128(low, zero), beyond_nine),
                                      _mm_adds_epu8(_mm_xor_si128(high, zero), beyond_nine));
    const uint64_t solids =
        high_bits(_mm_adds_epu8(low, beyond_space), _mm_adds_epu8(high, beyond_space));
    return {others | ~uint64_t{0} << 32, ~solids};
}

// `number_of` for two words at once.
inline Numbers numbers_of(uint64_t first, int64_t first_count, uint64_t second,
                          int64_t second_count) {
    first <<= 64 - 8 * first_count;
    second <<= 64 - 8 * second_count;
    const __m128i both = _mm_unpacklo_epi64(_mm_cvtsi64_si128(first), _mm_cvtsi64_si128(second));
    const __m128i digits = _mm_and_si128(both, _mm_set1_epi8(0x0F));
    const __m128i twos = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16(2561)), 8);
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(1 << 16 | 100));
    const __m128i packed = _mm_packs_epi32(fours, fours);
    const uint64_t eights =
        _mm_cvtsi128_si64(_mm_madd_epi16(packed, _mm_set1_epi32(1 << 16 | 10000)));
    return {eights & 0xFFFFFFFF, eights >> 32};
}
#else
// The highest bits of the eight bytes of a word.
inline uint64_t high_bits(uint64_t word) {
    return ((word & 0x8080808080808080) >> 7) * 0x0102040810204080 >> 56;
}

inline Marks marks_of(const char *p) {
    uint64_t others = 0, solids = 0;
    for (int at = 0; at < 32; at += 8) {
        const uint64_t word = load_word(p + at), digit = word ^ 0x3030303030303030;
        // The highest bit of each byte says whether the byte is above 9, or above ' '.
        const uint64_t beyond_nine = ((digit & 0x7F7F7F7F7F7F7F7F) + 0x7676767676767676) | digit;
        const uint64_t beyond_space = ((word & 0x7F7F7F7F7F7F7F7F) + 0x5F5F5F5F5F5F5F5F) | word;
        others |= high_bits(beyond_nine) << at;
        solids |= high_bits(beyond_space) << at;
    }
    return {others | ~uint64_t{0} << 32, ~solids};
}

inline Numbers numbers_of(uint64_t first, int64_t first_count, uint64_t second,
                          int64_t second_count) {
    return {number_of(first, first_count), number_of(second, second_count)};
}
#endif

inline constexpr double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t LARGEST_EXACT_POWER = 22;
constexpr uint64_t LARGEST_EXACT = uint64_t{1} << 53;  // larger integers are not exact in a double

constexpr int64_t MOST_INDEX_DIGITS = 14;
constexpr int64_t MOST_WHOLE_DIGITS = 7;   // so that the point is within 8 bytes of the start
constexpr int64_t MOST_DIGITS = 19;        // digits of the value, so that they fit into 64 bits

// The eight digits from `start` on, without the point after the first `whole` digits.
inline uint64_t load_pointless(const char *start, int64_t whole) {
    const uint64_t before = (uint64_t{1} << 8 * whole) - 1;
    return (load_word(start) & before) | (load_word(start + 1) & ~before);
}

// Adds an exponent of at most three digits to `power`; null if the text is not such an exponent.
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

// The value of a large mantissa, or of one followed by an exponent at `stop`. The result has a null
// `stop` if the value takes more than one operation or one library call.
inline LongValue long_value(const char *start, const char *stop, uint64_t mantissa,
                            int64_t fraction) {
    int64_t power = -fraction;
    if (kind_of(stop) == TOKEN) stop = add_exponent(stop, power);
    if (!stop) return {0, nullptr};
    double value = static_cast<double>(static_cast<int64_t>(mantissa));
    if (mantissa <= LARGEST_EXACT && std::abs(power) <= LARGEST_EXACT_POWER) {
        return {power > 0 ? value * POWERS_OF_TEN[power] : value / POWERS_OF_TEN[-power], stop};
    }
    if (power != -fraction) return {0, nullptr};
    read_nearest(start, stop, value);
    return {value, stop};
}

// The parts of an entry: `colon` digits, a colon, an optional minus, `whole` digits from `start`
// on, an optional point, and `fraction` digits up to `stop`.
struct Shape {
    int64_t colon;
    int64_t whole;
    int64_t fraction;
    bool negative;
    const char *start;
    const char *stop;

    int64_t count() const { return whole + fraction; }
};

// Finds the shape of the entry at `p`. Returns false for more than `most` digits before the colon,
// and for none or too many after it.
[[gnu::always_inline]] inline bool find_shape(const char *p, uint64_t others, int64_t most,
                                               Shape &shape) {
    shape.colon = lowest_bit(others);
    if (shape.colon < 1 || shape.colon > most || p[shape.colon] != ':') return false;
    others >>= shape.colon + 1;
    int64_t sign = others & 1;
    if (!likely(!sign) && p[shape.colon + 1] != '-') sign = 0;
    shape.negative = sign;
    shape.start = p + shape.colon + 1 + sign;
    others >>= sign;
    shape.whole = lowest_bit(others);
    shape.fraction = 0;
    shape.stop = shape.start + shape.whole;
    if (*shape.stop == '.') {
        const int64_t length = lowest_bit(others & (others - 1));
        shape.fraction = length - shape.whole - 1;
        shape.stop = shape.start + length;
    }
    return shape.whole <= MOST_WHOLE_DIGITS && shape.count() >= 1 && shape.count() <= MOST_DIGITS;
}

[[gnu::noinline]] inline double long_decimal(const char *start, const char *stop, int64_t whole,
                                            int64_t fraction) {
    const uint64_t mantissa = number_of(load_pointless(start, whole), start + 9, whole + fraction);
    return long_value(start, stop, mantissa, fraction).value;
}

struct Parsed {
    int64_t index;
    double value;
    const char *stop;
};

// Reads an entry of decimal numbers that ends in whitespace; false for any other entry.
[[gnu::always_inline]] inline bool usual_entry(const char *p, Parsed &entry) {
    const Marks marks = marks_of(p);
    const char *end = p + lowest_bit(marks.ends);
    // The search for the next entry starts here. If the compiler used `stop` of the shape instead,
    // the next entry would have to wait until all digits of this entry are found.
    const char *next = end;
    asm("" : "+r"(next));
    Shape shape;
    if (!find_shape(p, marks.others, 8, shape)) return false;
    if (shape.stop != end || kind_of(end) == TOKEN) return false;
    if (likely(shape.count() <= 8)) {
        const Numbers found = numbers_of(
            load_word(p), shape.colon, load_pointless(shape.start, shape.whole), shape.count());
        entry.index = static_cast<int64_t>(found.first);
        entry.value = static_cast<double>(static_cast<int64_t>(found.second)) /
                      POWERS_OF_TEN[shape.fraction];
    } else {
        entry.index = static_cast<int64_t>(number_of(load_word(p), shape.colon));
        entry.value = long_decimal(shape.start, shape.stop, shape.whole, shape.fraction);
    }
    if (shape.negative) entry.value = -entry.value;
    entry.stop = next;
    return true;
}

// Reads an entry of decimal numbers, possibly with an exponent, whose value is within the range of
// float too; `stop` is null for any other entry.
[[gnu::noinline]] inline Parsed long_entry(const char *p) {
    Shape shape;
    if (!find_shape(p, marks_of(p).others, MOST_INDEX_DIGITS, shape)) return {0, 0, nullptr};
    const uint64_t index = number_of(load_word(p), p + 8, shape.colon);
    const uint64_t mantissa =
        number_of(load_pointless(shape.start, shape.whole), shape.start + 9, shape.count());
    const LongValue found = long_value(shape.start, shape.stop, mantissa, shape.fraction);
    const double value = shape.negative ? -found.value : found.value;
    return {static_cast<int64_t>(index), value, found.stop};
}

// --- Any entry -------------------------------------------------------------------------------

inline void check_no_nul(Token token) {
    if (const char *nul = find(token, '\0')) fail(Code::nul, {nul, nul + 1});
}

// The number for the name of a feature: the lower 63 bits of the 64-bit FNV-1a hash of its bytes.
inline int64_t number_of_name(Token name) {
    uint64_t hash = 0xCBF29CE484222325;
    for (const char *p = name.start; p < name.stop; ++p) {
        hash = (hash ^ static_cast<unsigned char>(*p)) * 0x100000001B3;
    }
    return static_cast<int64_t>(hash & LARGEST_INT64);
}

[[gnu::noinline]] inline int64_t read_index(Token index, Token token, bool may_be_name) {
    int64_t value = 0;
    switch (read_integer(index, value)) {
        case Integer::malformed:
            if (may_be_name && index.size()) return number_of_name(index);
            fail(Code::bad_index, token);
        case Integer::too_small: fail(Code::negative_index, token);
        case Integer::too_large: fail(Code::index_too_large, token);
        case Integer::good: break;
    }
    if (value < 0) fail(Code::negative_index, token);
    return value;
}

// The parts of the token before and after its first colon.
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
[[gnu::noinline]] Parsed any_entry(const char *p, bool may_be_named) {
    const Token token = token_at(p);
    const Pair pair = split(token);
    const int64_t index = read_index(pair.before, token, may_be_named);
    double value;
    if (!read_real(pair.after, value)) fail(Code::bad_value, token);
    if (!is_finite<Value>(value)) fail(Code::not_finite, token);
    return {index, value, token.stop};
}

// Reads the entry that starts at `p`, which points to a character of a token.
template <class Value>
[[gnu::always_inline]] inline Parsed read_entry(const char *p, bool may_be_named) {
    Parsed entry;
    if (likely(usual_entry(p, entry))) return entry;
    entry = long_entry(p);
    return entry.stop ? entry : any_entry<Value>(p, may_be_named);
}

}  // namespace sparsemargin

// Lines of svmlight text, "label index:value index:value ... # comment", made rows of a CSR matrix.
//
// What a token may be is what scikit-learn's load_svmlight_file makes of it: whitespace is that of
// bytes.split(), numbers are those of int() and float(). The usual entry, digits and a colon
// and a decimal number within 32 bytes, is read without a branch that depends on its length;
// everything else goes by the plain way, one character after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "svmlight_failure.hpp"
#include "svmlight_labels.hpp"
#include "svmlight_numbers.hpp"

namespace sparsemargin {

// Bytes after the text that must be readable, whatever they hold.
constexpr int64_t PADDING = 64;

struct Options {
    int64_t base = 0;  // column = index - base
    int64_t least = 0;
    int64_t max_index = LARGEST_INT64;
    bool multilabel = false;
    bool query_id = false;
    int hash_bits = 0;  // above 0, column = that many bits of the index's hash
};

// Where rows go, and how far it is filled.
template <class Value, class Column>
struct Rows {
    Value *data;
    Column *indices;
    Column *ends;         // of each row's entries
    int32_t *labels;      // room for one a row; with multilabel, for one every two bytes of text
    int64_t *label_ends;  // with multilabel
    int64_t *query_ids;   // with query_id: room for one a row
    int64_t row_room;
    int64_t entry_room;
    int64_t row = 0;
    int64_t entry = 0;
    int64_t label = 0;
    int64_t query = 0;
};

struct Outcome {
    Code code = Code::none;
    int64_t offset = 0;  // of what is refused
    int64_t length = 0;
    int64_t lines = 0;
    int64_t lowest = LARGEST_INT64;  // index as written
    int64_t highest = -1;
};

// --- Characters ------------------------------------------------------------------------------

enum Kind : uint8_t { TOKEN, BLANK, COMMENT, LINE_END };

constexpr std::array<Kind, 256> KINDS = [] {
    std::array<Kind, 256> kinds{};
    for (char c : {' ', '\t', '\r', '\v', '\f'}) kinds[static_cast<unsigned char>(c)] = BLANK;
    kinds['#'] = COMMENT;
    kinds['\n'] = LINE_END;
    return kinds;
}();

inline Kind kind_of(const char *p) { return KINDS[static_cast<unsigned char>(*p)]; }

inline const char *skip_blanks(const char *p) {
    while (kind_of(p) == BLANK) ++p;
    return p;
}

inline Token token_at(const char *p) {
    const char *stop = p;
    while (kind_of(stop) == TOKEN) ++stop;
    return {p, stop};
}

inline const char *find(Token token, char c) {
    return static_cast<const char *>(std::memchr(token.start, c, token.size()));
}

inline void check_no_nul(Token token) {
    if (const char *nul = find(token, '\0')) fail(Code::nul, {nul, nul + 1});
}

// From the end of a line's tokens to the start of the next line.
inline const char *finish_line(const char *p) {
    if (*p == '\n') return p + 1;
    const char *stop = p;
    while (*stop != '\n') ++stop;
    check_no_nul({p, stop});
    return stop + 1;
}

// --- The usual entry -------------------------------------------------------------------------

inline uint64_t load_word(const char *p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
}

// The number that `count` digits, 1 to 8, make up; the word's other bytes don't matter.
inline uint64_t number_of(uint64_t word, int64_t count) {
    word = (word << (64 - 8 * count)) & 0x0F0F0F0F0F0F0F0F;
    word = (word * 2561) >> 8;
    word = ((word & 0x00FF00FF00FF00FF) * 6553601) >> 16;
    return ((word & 0x0000FFFF0000FFFF) * 42949672960001) >> 32;
}

struct Marks {
    uint64_t others;  // bit i: byte i of 32 is no digit; the bits from 32 on are set
    uint64_t minus;   // bit i: byte i is a minus
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
    for (int i = 0; i < 4; ++i) {
        const uint64_t word = load_word(p + 8 * i);
        const uint64_t digit = word ^ 0x3030303030303030, minus = word ^ 0x2D2D2D2D2D2D2D2D;
        const uint64_t above = (((digit & 0x7F7F7F7F7F7F7F7F) + 0x7676767676767676) | digit);
        const uint64_t unlike = (((minus & 0x7F7F7F7F7F7F7F7F) + 0x7F7F7F7F7F7F7F7F) | minus);
        others |= high_bits(above) << 8 * i;
        minuses |= high_bits(~unlike) << 8 * i;
    }
    return {others, minuses};
}
#endif

inline constexpr double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                          1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                          1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
inline constexpr uint64_t WHOLE_POWERS_OF_TEN[] = {1,      10,      100,      1000,     10000,
                                                  100000, 1000000, 10000000, 100000000};
constexpr uint64_t LARGEST_EXACT = uint64_t{1} << 53;  // of the integers in doubles

// What a decimal number of at most 19 digits is; `whole` of them, at most 7, stand before the
// point, if there is one.
inline double decimal_of(const char *start, const char *stop, int64_t whole, int64_t fraction) {
    const uint64_t before = (uint64_t{1} << 8 * whole) - 1;
    const uint64_t word = (load_word(start) & before) | (load_word(start + 1) & ~before);
    int64_t count = whole + fraction;
    uint64_t mantissa = number_of(word, std::min<int64_t>(count, 8));
    for (const char *p = start + 9; count > 8; p += 8) {
        count -= 8;
        const int64_t more = std::min<int64_t>(count, 8);
        mantissa = mantissa * WHOLE_POWERS_OF_TEN[more] + number_of(load_word(p), more);
    }
    if (mantissa <= LARGEST_EXACT) {
        return static_cast<double>(static_cast<int64_t>(mantissa)) / POWERS_OF_TEN[fraction];
    }
    double value;
    std::from_chars(start, stop, value);
    return value;
}

// Reads an entry of the usual look; null for any other, of which nothing is known then.
inline const char *usual_entry(const char *p, int64_t &index, double &value) {
    const Marks marks = marks_of(p);
    uint64_t others = marks.others;
    const int64_t colon = __builtin_ctzll(others);
    if (colon < 1 || colon > 8 || p[colon] != ':') return nullptr;
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
    if (kind_of(stop) == TOKEN || whole > 7 || count < 1 || count > 19) return nullptr;
    index = static_cast<int64_t>(number_of(load_word(p), colon));
    value = decimal_of(start, stop, whole, fraction);
    value = sign ? -value : value;
    return stop;
}

// --- Any entry -------------------------------------------------------------------------------

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
[[gnu::noinline]] const char *any_entry(const char *p, int64_t &index, double &value) {
    const Token token = token_at(p);
    const Pair pair = split(token);
    index = read_index(pair.before, token);
    if (!read_real(pair.after, value)) fail(Code::bad_value, token);
    if (!is_finite<Value>(value)) fail(Code::not_finite, token);
    return token.stop;
}

// --- Rows ------------------------------------------------------------------------------------

// The finaliser of splitmix64.
inline uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

struct Entry {
    int64_t column;
    const char *start;  // in the text: tells occurrences apart, and their order
    double value;

    bool operator<(const Entry &other) const {
        return column != other.column ? column < other.column : start < other.start;
    }
};

template <class Value, class Column>
class LineScanner {
  public:
    int64_t lines = 0;
    int64_t lowest = LARGEST_INT64;
    int64_t highest = -1;

    LineScanner(const Options &options, LabelTable &labels, std::vector<Entry> &gathered,
                Rows<Value, Column> &rows)
        : options_(options), labels_(labels), gathered_(gathered), rows_(rows) {
        if (sizeof(Column) < sizeof(int64_t) && !options.hash_bits) {
            limit_ = std::min(limit_, std::numeric_limits<Column>::max() + options.base);
        }
    }

    // Scans text whose last character ends a line.
    void scan(const char *p, const char *stop) {
        while (p < stop) p = scan_line(p);
    }

  private:
    const char *scan_line(const char *p) {
        ++lines;
        p = skip_blanks(p);
        if (kind_of(p) != TOKEN) return finish_line(p);
        if (rows_.row == rows_.row_room) fail(Code::no_room, {p, p});
        p = skip_blanks(options_.multilabel ? scan_labels(p) : scan_label(p));
        if (*p == 'q') p = scan_query_id(p);
        p = options_.hash_bits ? gather(p) : scan_entries(p);
        rows_.ends[rows_.row++] = static_cast<Column>(rows_.entry);
        return finish_line(p);
    }

    const char *scan_label(const char *p) {
        const Token token = token_at(p);
        rows_.labels[rows_.label++] = id_of(token);
        return token.stop;
    }

    int32_t id_of(Token token) {
        int32_t id;
        if (labels_.recall(token, id)) return id;
        check_no_nul(token);
        if (find(token, ':')) fail(Code::no_label, token);
        if (find(token, ',')) fail(Code::several_labels, token);
        return labels_.look_up(token);
    }

    const char *scan_labels(const char *p) {
        const Token token = token_at(p);
        if (!find(token, ':')) {
            for (const char *start = p; start <= token.stop;) {
                const char *stop = std::find(start, token.stop, ',');
                if (start == stop) fail(Code::bad_label, token);
                rows_.labels[rows_.label++] = id_of({start, stop});
                start = stop + 1;
            }
            p = token.stop;
        }
        rows_.label_ends[rows_.row] = rows_.label;
        return p;
    }

    const char *scan_query_id(const char *p) {
        const Token token = token_at(p);
        if (token.size() < 3 || std::memcmp(p, "qid", 3) != 0) return p;
        const Pair pair = split(token);
        if (options_.query_id) {
            int64_t id;
            if (read_integer(pair.after, id) != Integer::good) fail(Code::bad_query_id, token);
            rows_.query_ids[rows_.query++] = id;
        }
        return token.stop;
    }

    // Calls take(index, value, start) for entries until it returns false, which leaves null.
    template <class Take>
    const char *each_entry(const char *p, Take take) {
        for (;;) {
            p = skip_blanks(p);
            if (kind_of(p) != TOKEN) return p;
            int64_t index;
            double value;
            const char *stop = usual_entry(p, index, value);
            if (!stop) stop = any_entry<Value>(p, index, value);
            if (!take(index, value, p)) return nullptr;
            p = stop;
        }
    }

    // Entries whose indices increase go where they belong at once.
    const char *scan_entries(const char *p) {
        const int64_t first = rows_.entry;
        int64_t entry = first, previous = options_.least - 1;
        const char *stop = each_entry(p, [&](int64_t index, double value, const char *start) {
            if (index <= previous || index > limit_) {
                check_index(index, start);
                return false;
            }
            if (entry == rows_.entry_room) fail(Code::no_room, {start, start});
            rows_.data[entry] = static_cast<Value>(value);
            rows_.indices[entry] = static_cast<Column>(index - options_.base);
            previous = index;
            ++entry;
            return true;
        });
        if (!stop) return gather(p);
        if (entry > first) {
            lowest = std::min<int64_t>(lowest, rows_.indices[first] + options_.base);
            highest = std::max(highest, previous);
        }
        rows_.entry = entry;
        return stop;
    }

    // Entries in any order are sorted, and summed where they meet.
    [[gnu::noinline]] const char *gather(const char *p) {
        gathered_.clear();
        const char *stop = each_entry(p, [&](int64_t index, double value, const char *start) {
            check_index(index, start);
            lowest = std::min(lowest, index);
            highest = std::max(highest, index);
            gathered_.push_back({column_of(index), start, value});
            return true;
        });
        std::sort(gathered_.begin(), gathered_.end());
        for (size_t i = 0; i < gathered_.size();) {
            const Entry &entry = gathered_[i];
            double sum = entry.value;
            while (++i < gathered_.size() && gathered_[i].column == entry.column) {
                sum += gathered_[i].value;
            }
            if (!is_finite<Value>(sum)) fail(Code::not_finite, token_at(gathered_[i - 1].start));
            if (rows_.entry == rows_.entry_room) fail(Code::no_room, {p, p});
            rows_.data[rows_.entry] = static_cast<Value>(sum);
            rows_.indices[rows_.entry++] = static_cast<Column>(entry.column);
        }
        return stop;
    }

    int64_t column_of(int64_t index) const {
        if (!options_.hash_bits) return index - options_.base;
        return static_cast<int64_t>(mixed(index) >> (64 - options_.hash_bits));
    }

    void check_index(int64_t index, const char *start) const {
        if (index > options_.max_index) fail(Code::index_too_large, token_at(start));
        if (index < options_.least) fail(Code::zero_index, token_at(start));
        if (index > limit_) fail(Code::needs_wide_columns, token_at(start));
    }

    const Options options_;
    LabelTable &labels_;
    std::vector<Entry> &gathered_;
    Rows<Value, Column> &rows_;
    int64_t limit_ = options_.max_index;
};

// --- Texts -----------------------------------------------------------------------------------

// Scans one text after the other; labels are numbered through all of them.
class Scanner {
  public:
    explicit Scanner(const Options &options) : options_(options) {}

    const LabelTable &labels() const { return labels_; }

    // Complete lines; the last may lack its end. PADDING readable bytes must follow.
    template <class Value, class Column>
    Outcome scan(const char *text, int64_t size, Rows<Value, Column> &rows) {
        Outcome outcome;
        LineScanner<Value, Column> lines(options_, labels_, gathered_, rows);
        const int64_t ended = std::string_view(text, size).rfind('\n') + 1;
        const char *start = text;
        try {
            lines.scan(text, text + ended);
            if (ended < size) {
                last_line_.assign(text + ended, size - ended);
                last_line_.append(1 + PADDING, '\n');
                outcome.offset = ended;
                start = last_line_.data();
                lines.scan(start, start + 1);
            }
        } catch (const Failure &failure) {
            outcome.code = failure.code;
            outcome.offset += failure.token.start - start;
            outcome.length = failure.token.size();
        }
        outcome.lines = lines.lines;
        outcome.lowest = lines.lowest;
        outcome.highest = lines.highest;
        return outcome;
    }

  private:
    const Options options_;
    LabelTable labels_;
    std::vector<Entry> gathered_;
    std::string last_line_;
};

struct Counts {
    int64_t lines = 0;
    int64_t colons = 0;
};

// Bounds of the rows and of the entries of a text.
inline Counts count(const char *text, int64_t size) {
    constexpr int64_t BLOCK = 128;  // fewer than a byte can count
    Counts counts;
    for (int64_t at = 0; at < size; at += BLOCK) {
        const char *block = text + at;
        const int64_t length = std::min(BLOCK, size - at);
        uint8_t lines = 0, colons = 0;
        for (int64_t i = 0; i < length; ++i) {
            lines += block[i] == '\n';
            colons += block[i] == ':';
        }
        counts.lines += lines;
        counts.colons += colons;
    }
    if (size > 0 && text[size - 1] != '\n') ++counts.lines;
    return counts;
}

}  // namespace sparsemargin

// Characters and tokens of svmlight text, and error codes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "../numerics/words.hpp"

namespace sparsemargin {

// Number of bytes after a text that must be readable, with any content.
constexpr int64_t PADDING = 64;

// A maximal piece of text without whitespace.
struct Token {
    const char *start;
    const char *stop;

    int64_t size() const { return stop - start; }
};

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

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

enum class Code {
    none,
    no_label,
    several_labels,
    bad_label,
    missing_colon,
    bad_index,
    negative_index,
    zero_index,
    index_too_large,
    overlong,
    bad_value,
    not_finite,
    nul,
    invisible,
    // The two codes below are for the caller of the scanner, not for the author of the text.
    needs_wide_columns,
    no_room,
};

inline const char *name_of(Code code) {
    static constexpr const char *names[] = {
        "none",           "no_label",   "several_labels", "bad_label",          "missing_colon",
        "bad_index",      "negative_index", "zero_index", "index_too_large",    "overlong",
        "bad_value",      "not_finite", "nul",            "invisible",
        "needs_wide_columns", "no_room",
    };
    return names[static_cast<int>(code)];
}

// Thrown inside the scanner by functions that are never inlined, so that the fast path has no
// checks of results.
struct Failure {
    Code code;
    Token token;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(Code code, Token token) {
    throw Failure{code, token};
}

}  // namespace sparsemargin

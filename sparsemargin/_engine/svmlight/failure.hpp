// Why a text is refused, and where.
#pragma once

#include "text.hpp"

namespace sparsemargin {

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
    bad_query_id,
    // The two below are for the caller of the scanner, not for the writer of the text.
    needs_wide_columns,
    no_room,
};

inline const char *name_of(Code code) {
    static constexpr const char *names[] = {
        "none",           "no_label",   "several_labels", "bad_label",          "missing_colon",
        "bad_index",      "negative_index", "zero_index", "index_too_large",    "overlong",
        "bad_value",      "not_finite", "nul",            "bad_query_id",
        "needs_wide_columns", "no_room",
    };
    return names[static_cast<int>(code)];
}

// Thrown within the scanner, from places that are never inlined, so that the usual way through
// the text carries no checks of results.
struct Failure {
    Code code;
    Token token;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(Code code, Token token) {
    throw Failure{code, token};
}

}  // namespace sparsemargin

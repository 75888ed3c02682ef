// svmlight text made rows of CSR matrices.
//
// What a token may be is what scikit-learn's load_svmlight_file makes of it: whitespace is that of
// bytes.split(), numbers are those of int() and float(). Indices may come in any order and repeat;
// labels may be words. Python has no part in this, so that a fuzzer can be built on it alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "failure.hpp"
#include "labels.hpp"
#include "lines.hpp"
#include "sorting.hpp"
#include "text.hpp"

namespace sparsemargin {

struct Outcome {
    Code code = Code::none;
    int64_t offset = 0;  // of what is refused
    int64_t length = 0;
    int64_t lines = 0;
    int64_t lowest = LARGEST_INT64;  // index as written
    int64_t highest = -1;
};

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
    GatheredRow gathered_;
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

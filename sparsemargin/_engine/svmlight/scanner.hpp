// Parsing of svmlight text into CSR rows.
//
// Tokens have the syntax of scikit-learn's load_svmlight_file: whitespace as in bytes.split(),
// numbers as in int() and float(). Indices may be unsorted and repeated. Labels may be words, and
// so may indices that are hashed. The code does not depend on Python, so that a fuzzer can use it
// alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "entries.hpp"
#include "labels.hpp"
#include "sorting.hpp"
#include "text.hpp"

namespace sparsemargin {

struct Options {
    int64_t base = 0;  // column = index - base
    int64_t least = 0;
    int64_t max_index = LARGEST_INT64;
    bool multilabel = false;
    int hash_bits = 0;  // if above 0, column = that many bits of the hash of the index
};

// Destination arrays of the rows, and the number of elements in use.
template <class Value, class Column>
struct ParsedRows {
    Value *data;
    Column *indices;
    Column *ends;         // end of the entries of each row
    int32_t *labels;      // room for one per row; with multilabel, for one per two bytes of text
    int64_t *label_ends;  // with multilabel
    int64_t row_room;
    int64_t entry_room;
    int64_t row = 0;
    int64_t entry = 0;
    int64_t label = 0;
};

// The finalizer of splitmix64.
inline uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// Moves from the end of a line's tokens to the start of the next line.
inline const char *finish_line(const char *p) {
    if (*p == '\n') return p + 1;
    const char *stop = p;
    while (*stop != '\n') ++stop;
    check_no_nul({p, stop});
    return stop + 1;
}

template <class Value, class Column>
class LineScanner {
  public:
    int64_t lines = 0;
    int64_t lowest = LARGEST_INT64;
    int64_t highest = -1;

    LineScanner(const Options &options, LabelTable &labels, GatheredRow &gathered,
                ParsedRows<Value, Column> &rows)
        : options_(options), labels_(labels), gathered_(gathered), rows_(rows) {
        if (sizeof(Column) < sizeof(int64_t) && !options.hash_bits) {
            limit_ = std::min(limit_, std::numeric_limits<Column>::max() + options.base);
        }
    }

    // Scans text that ends with the end of a line.
    void scan(const char *p, const char *stop) {
        while (p < stop) p = scan_line(p);
    }

  private:
    const char *scan_line(const char *p) {
        ++lines;
        p = skip_blanks(p);
        if (kind_of(p) != TOKEN) return finish_line(p);
        if (rows_.row >= rows_.row_room) fail(Code::no_room, {p, p});
        p = skip_blanks(options_.multilabel ? scan_labels(p) : scan_label(p));
        if (*p == 'q') p = skip_query_id(p);
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

    const char *skip_query_id(const char *p) {
        const Token token = token_at(p);
        // With hashing, the name of a feature may begin with "qid", too.
        const int64_t least = options_.hash_bits ? 4 : 3;
        if (token.size() < least || std::memcmp(p, "qid:", least) != 0) return p;
        split(token);  // fails if there is no colon
        return token.stop;
    }

    // Calls take(index, value, start) for each entry. Returns null once `take` returns false.
    template <class Take>
    const char *each_entry(const char *p, Take take) {
        p = skip_blanks(p);
        while (kind_of(p) == TOKEN) {
            const Parsed entry = read_entry<Value>(p, options_.hash_bits);
            if (!take(entry.index, entry.value, p)) return nullptr;
            p = entry.stop + 1;
            if (!likely(*entry.stop == ' ' && kind_of(p) == TOKEN)) p = skip_blanks(entry.stop);
        }
        return p;
    }

    // Entries with increasing indices are written directly.
    const char *scan_entries(const char *p) {
        const int64_t first = rows_.entry;
        int64_t entry = first, previous = options_.least - 1;
        const char *stop = each_entry(p, [&](int64_t index, double value, const char *start) {
            if (index <= previous || index > limit_) {
                check_index(index, start);
                return false;
            }
            if (entry >= rows_.entry_room) fail(Code::no_room, {start, start});
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

    // Entries in any order are sorted, and duplicates are summed.
    [[gnu::noinline]] const char *gather(const char *p) {
        std::vector<Entry> &entries = gathered_.entries;
        entries.clear();
        const char *stop = each_entry(p, [&](int64_t index, double value, const char *start) {
            check_index(index, start);
            lowest = std::min(lowest, index);
            highest = std::max(highest, index);
            entries.push_back({column_of(index), start, value});
            return true;
        });
        gathered_.sort();
        for (size_t i = 0; i < entries.size();) {
            const int64_t column = entries[i].column;
            double sum = entries[i].value;
            while (++i < entries.size() && entries[i].column == column) sum += entries[i].value;
            if (!is_finite<Value>(sum)) fail(Code::not_finite, token_at(entries[i - 1].start));
            if (rows_.entry >= rows_.entry_room) fail(Code::no_room, {p, p});
            rows_.data[rows_.entry] = static_cast<Value>(sum);
            rows_.indices[rows_.entry++] = static_cast<Column>(column);
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
    GatheredRow &gathered_;
    ParsedRows<Value, Column> &rows_;
    int64_t limit_ = options_.max_index;
};

struct ScanResult {
    Code code = Code::none;
    int64_t offset = 0;  // of the rejected token
    int64_t length = 0;
    int64_t lines = 0;
    int64_t lowest = LARGEST_INT64;  // smallest index in the text
    int64_t highest = -1;
};

// Scans several texts, and numbers the labels of all of them.
class Scanner {
  public:
    explicit Scanner(const Options &options) : options_(options) {}

    const LabelTable &labels() const { return labels_; }

    // Scans complete lines, the last of which may lack its end. PADDING readable bytes must follow.
    template <class Value, class Column>
    ScanResult scan(const char *text, int64_t size, ParsedRows<Value, Column> &rows) {
        ScanResult result;
        LineScanner<Value, Column> lines(options_, labels_, gathered_, rows);
        const int64_t ended = std::string_view(text, size).rfind('\n') + 1;
        const char *start = text;
        try {
            lines.scan(text, text + ended);
            if (ended < size) {
                last_line_.assign(text + ended, size - ended);
                last_line_.append(1 + PADDING, '\n');
                result.offset = ended;
                start = last_line_.data();
                lines.scan(start, start + 1);
            }
        } catch (const Failure &failure) {
            result.code = failure.code;
            result.offset += failure.token.start - start;
            result.length = failure.token.size();
        }
        result.lines = lines.lines;
        result.lowest = lines.lowest;
        result.highest = lines.highest;
        return result;
    }

  private:
    const Options options_;
    LabelTable labels_;
    GatheredRow gathered_;
    std::string last_line_;
};

}  // namespace sparsemargin

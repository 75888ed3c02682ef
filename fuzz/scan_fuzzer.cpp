// What must hold for every text, whoever wrote it: libFuzzer and replay.cpp call this with bytes.
//
// The first four bytes choose the options and what follows the text; the rest is the text. It is
// scanned, scanned again with other bytes after it, in two parts, and into given arrays; rows
// that come out are compared with a plain reading by strtod. Buffers have exactly the sizes that
// are promised to suffice, so that the address sanitizer sees every step beyond them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "../sparsemargin/_engine/svmlight/scanner.hpp"

using namespace sparsemargin;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            std::fprintf(stderr, "line %d: %s is false\n", __LINE__, #condition); \
            std::abort();                                                      \
        }                                                                      \
    } while (0)

namespace {

struct Settings {
    Options options;
    bool narrow_values, narrow_columns;
    char padding;
};

Settings settings_of(const uint8_t *bytes) {
    static constexpr int64_t LIMITS[] = {LARGEST_INT64, int64_t{1} << 31, 100, 0};
    Settings settings;
    settings.narrow_values = bytes[0] & 1;
    settings.narrow_columns = bytes[0] & 2;
    settings.options.multilabel = bytes[0] & 4;
    settings.options.hash_bits = bytes[1] & 32 ? bytes[1] % 32 : 0;
    settings.options.least = !settings.options.hash_bits && bytes[1] & 1;
    settings.options.base = settings.options.least || (!settings.options.hash_bits && bytes[1] & 2);
    settings.options.max_index = LIMITS[bytes[2] % 4];
    settings.padding = static_cast<char>(bytes[3]);
    return settings;
}

// A copy of a text on the heap, followed by PADDING bytes and not one more.
class Padded {
  public:
    Padded(const std::string &text, char padding)
        : size_(text.size()), bytes_(std::make_unique<char[]>(size_ + PADDING)) {
        std::memcpy(bytes_.get(), text.data(), size_);
        std::memset(bytes_.get() + size_, padding, PADDING);
    }

    const char *text() const { return bytes_.get(); }
    int64_t size() const { return size_; }

  private:
    int64_t size_;
    std::unique_ptr<char[]> bytes_;
};

template <class Value, class Column>
struct Matrix {
    std::unique_ptr<Value[]> data;
    std::unique_ptr<Column[]> indices, ends;
    std::unique_ptr<int32_t[]> labels;
    std::unique_ptr<int64_t[]> label_ends;
    ParsedRows<Value, Column> rows;
    ScanResult result;

    Matrix(int64_t row_room, int64_t entry_room, int64_t label_room)
        : data(new Value[entry_room]), indices(new Column[entry_room]), ends(new Column[row_room]),
          labels(new int32_t[label_room]), label_ends(new int64_t[row_room]),
          rows{data.get(), indices.get(), ends.get(), labels.get(), label_ends.get(),
               row_room, entry_room} {}
};

// Room for the densest text of that size.
template <class Value, class Column>
Matrix<Value, Column> scanned(Scanner &scanner, const Padded &text) {
    const int64_t marks = (text.size() + 1) / 2, entries = (text.size() + 1) / 4;
    Matrix<Value, Column> matrix(marks, entries, marks);
    matrix.result = scanner.scan(text.text(), text.size(), matrix.rows);
    return matrix;
}

template <class Value>
bool same_bits(Value a, Value b) {
    return std::memcmp(&a, &b, sizeof(Value)) == 0;
}

// Whether b, from a row, an entry and a label on, holds what all of a does.
template <class A, class B>
void check_same(const A &a, const B &b, int64_t row, int64_t entry, int64_t label,
                bool multilabel) {
    for (int64_t i = 0; i < a.rows.entry; ++i) {
        CHECK(same_bits(a.data[i], b.data[entry + i]));
        CHECK(a.indices[i] == b.indices[entry + i]);
    }
    for (int64_t i = 0; i < a.rows.row; ++i) {
        CHECK(a.ends[i] + entry == b.ends[row + i]);
        if (multilabel) CHECK(a.label_ends[i] + label == b.label_ends[row + i]);
    }
    for (int64_t i = 0; i < a.rows.label; ++i) CHECK(a.labels[i] == b.labels[label + i]);
}

void check_same(const ScanResult &a, const ScanResult &b) {
    CHECK(a.code == b.code && a.offset == b.offset && a.length == b.length);
    CHECK(a.lines == b.lines);
    if (a.code == Code::none) CHECK(a.lowest == b.lowest && a.highest == b.highest);
}

// --- A plain reading of text that was taken ---------------------------------------------------

using Tokens = std::vector<std::string>;

std::vector<Tokens> tokens_of_rows(const std::string &text) {
    std::vector<Tokens> rows(1);
    bool in_token = false, in_comment = false;
    for (char c : text) {
        in_comment = c != '\n' && (in_comment || c == '#');
        const bool blank = in_comment || std::strchr(" \t\n\r\v\f", c);
        if (!blank && !in_token) rows.back().emplace_back();
        if (!blank) rows.back().back() += c;
        in_token = !blank;
        if (c == '\n' && !rows.back().empty()) rows.emplace_back();
    }
    if (rows.back().empty()) rows.pop_back();
    return rows;
}

std::string without_underscores(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    return text;
}

double double_of(const std::string &text) {
    return std::strtod(without_underscores(text).c_str(), nullptr);
}

// Of an index that was taken: a name has a character that no integer has, or one out of place.
bool is_name(const std::string &text) {
    int64_t value;
    return read_integer({text.data(), text.data() + text.size()}, value) == Integer::malformed;
}

int64_t number_of_name(const std::string &text) {
    uint64_t hash = 14695981039346656037u;
    for (unsigned char byte : text) hash = (hash ^ byte) * 1099511628211u;
    return static_cast<int64_t>(hash << 1 >> 1);
}

int64_t column_of(const std::string &text, const Options &options) {
    const int64_t index = options.hash_bits && is_name(text)
                              ? number_of_name(text)
                              : std::strtoll(without_underscores(text).c_str(), nullptr, 10);
    if (!options.hash_bits) return index - options.base;
    return static_cast<int64_t>(mixed(index) >> (64 - options.hash_bits));
}

int64_t count_labels(const Tokens &tokens, const Options &options) {
    if (!options.multilabel) return 1;
    if (tokens[0].find(':') != std::string::npos) return 0;
    return 1 + std::count(tokens[0].begin(), tokens[0].end(), ',');
}

void check_label(const std::string &written, const LabelTable &labels, int32_t id) {
    CHECK(id >= 0 && id < labels.size());
    if (std::isnan(labels.number(id))) {
        CHECK(labels.text(id) == written);
    } else {
        CHECK(labels.number(id) == double_of(written));
        CHECK(labels.number(id) == double_of(labels.text(id)));
    }
}

template <class M>
void check_labels(const Tokens &tokens, const M &matrix, int64_t row, const LabelTable &labels,
                  const Options &options) {
    const int64_t count = count_labels(tokens, options);
    const int64_t end = options.multilabel ? matrix.label_ends[row] : row + 1;
    CHECK(count <= end && end <= matrix.rows.label);
    size_t start = 0;
    for (int64_t i = end - count; i < end; ++i) {
        const size_t stop = options.multilabel ? tokens[0].find(',', start) : std::string::npos;
        check_label(tokens[0].substr(start, stop - start), labels, matrix.labels[i]);
        start = stop + 1;
    }
}

template <class M>
void check_entries(const Tokens &tokens, size_t first, const M &matrix, int64_t row,
                   const Options &options) {
    std::map<int64_t, double> sums;
    for (size_t i = first; i < tokens.size(); ++i) {
        const size_t colon = tokens[i].find(':');
        const int64_t column = column_of(tokens[i].substr(0, colon), options);
        const double value = double_of(tokens[i].substr(colon + 1));
        const auto [at, fresh] = sums.emplace(column, value);
        if (!fresh) at->second += value;
    }
    int64_t entry = row ? matrix.ends[row - 1] : 0;
    CHECK(matrix.ends[row] - entry == static_cast<int64_t>(sums.size()));
    for (const auto &[column, sum] : sums) {
        using Value = std::decay_t<decltype(matrix.data[0])>;
        CHECK(matrix.indices[entry] == column);
        CHECK(same_bits(matrix.data[entry], static_cast<Value>(sum)));
        CHECK(std::isfinite(matrix.data[entry]));
        ++entry;
    }
}

template <class M>
void check_rows(const std::string &text, const M &matrix, const LabelTable &labels,
                const Options &options) {
    const std::vector<Tokens> rows = tokens_of_rows(text);
    CHECK(matrix.rows.row == static_cast<int64_t>(rows.size()));
    const std::string prefix = options.hash_bits ? "qid:" : "qid";
    for (size_t row = 0; row < rows.size(); ++row) {
        const Tokens &tokens = rows[row];
        check_labels(tokens, matrix, row, labels, options);
        size_t first = count_labels(tokens, options) > 0;
        if (first < tokens.size() && tokens[first].compare(0, prefix.size(), prefix) == 0) {
            ++first;
        }
        check_entries(tokens, first, matrix, row, options);
    }
}

// --- One text ---------------------------------------------------------------------------------

template <class Value, class Column>
void check_parts(const std::string &text, const Matrix<Value, Column> &whole,
                 const Settings &settings) {
    const size_t cut = text.find('\n', text.size() / 2) + 1;
    Scanner scanner(settings.options);
    const auto head = scanned<Value, Column>(scanner, {text.substr(0, cut), '1'});
    CHECK(head.result.code == Code::none);
    const bool multilabel = settings.options.multilabel;
    check_same(head, whole, 0, 0, 0, multilabel);
    const auto tail = scanned<Value, Column>(scanner, {text.substr(cut), '#'});
    CHECK(tail.result.code == Code::none);
    const auto &at = head.rows;
    check_same(tail, whole, at.row, at.entry, at.label, multilabel);
    CHECK(head.rows.row + tail.rows.row == whole.rows.row);
    CHECK(head.rows.entry + tail.rows.entry == whole.rows.entry);
}

// Fills a matrix from its third row on, with room for what was counted but so many rows and entries.
template <class Value, class Column>
void check_filling(const Padded &text, const Matrix<Value, Column> &whole,
                   const Settings &settings, int64_t rows_short, int64_t entries_short) {
    constexpr int64_t ROW = 2, ENTRY = 3;
    const char *begin = text.text(), *end = begin + text.size();
    const bool unended = begin != end && end[-1] != '\n';
    const int64_t lines = std::count(begin, end, '\n') + unended;
    const int64_t colons = std::count(begin, end, ':');
    const bool multilabel = settings.options.multilabel;
    const int64_t labels = multilabel ? (text.size() + 1) / 2 : lines;
    Matrix<Value, Column> filled(ROW + lines - rows_short, ENTRY + colons - entries_short,
                                 ROW + labels);
    filled.rows.row = filled.rows.label = ROW;
    filled.rows.entry = ENTRY;
    Scanner scanner(settings.options);
    filled.result = scanner.scan(text.text(), text.size(), filled.rows);
    if (filled.result.code == Code::no_room) {
        CHECK(rows_short || entries_short);
        return;
    }
    check_same(whole.result, filled.result);
    if (whole.result.code == Code::none) {
        CHECK(lines == whole.result.lines);
        check_same(whole, filled, ROW, ENTRY, ROW, multilabel);
    }
}

template <class Value, class Column>
Code check_text(const std::string &text, const Settings &settings) {
    const Padded padded(text, settings.padding);
    Scanner scanner(settings.options);
    const auto whole = scanned<Value, Column>(scanner, padded);
    Scanner other(settings.options);
    check_same(whole.result, scanned<Value, Column>(other, {text, '\n'}).result);
    check_filling(padded, whole, settings, 0, 0);
    check_filling(padded, whole, settings, 1, 0);
    check_filling(padded, whole, settings, 0, 1);
    const ScanResult &result = whole.result;
    CHECK(std::strlen(name_of(result.code)) > 0);
    if (result.code == Code::none) {
        check_rows(text, whole, scanner.labels(), settings.options);
        check_parts(text, whole, settings);
    } else if (result.code != Code::needs_wide_columns) {
        CHECK(result.code != Code::no_room);
        CHECK(0 <= result.offset && 0 < result.length);
        CHECK(result.offset + result.length <= padded.size());
    }
    return result.code;
}

template <class Value>
void check_text_of(const std::string &text, const Settings &settings) {
    const bool narrow = settings.narrow_columns;
    if (narrow && check_text<Value, int32_t>(text, settings) != Code::needs_wide_columns) return;
    CHECK((check_text<Value, int64_t>(text, settings)) != Code::needs_wide_columns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size < 4) return 0;
    const Settings settings = settings_of(bytes);
    const std::string text(reinterpret_cast<const char *>(bytes) + 4, size - 4);
    if (settings.narrow_values) {
        check_text_of<float>(text, settings);
    } else {
        check_text_of<double>(text, settings);
    }
    return 0;
}

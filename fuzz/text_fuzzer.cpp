// Random texts, of every width that Python's strings have, through the scanner of texts: under the
// sanitizers nothing may be read or written where it should not, and terms come out in order.
//
//     text_fuzzer SEED N_CASES
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "order.hpp"
#include "scanner.hpp"
#include "weighing.hpp"

using namespace sparsemargin::text;

namespace {

std::mt19937_64 random_bits;

uint32_t below(uint32_t n) { return random_bits() % n; }

// Some of Unicode's rules, not all: which they are is Python's matter.
uint32_t lower(uint32_t c) {
    const bool upper = (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c < 0xDE) || (c >= 0x410 && c < 0x430);
    return upper ? c + 32 : c;
}
int is_space(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31) || c == 0x85 || c == 0x3000;
}
int is_word(uint32_t c) {
    return c == '_' || (c < 128 ? std::isalnum(c) != 0 : c % 3 != 0 && !is_space(c));
}

uint32_t character(uint32_t kind) {
    switch (kind) {
    case 0: return "ab _A. 9\n"[below(9)];
    case 1: return below(256);
    case 2: return below(3) ? 'a' + below(26) : ' ';
    default: return below(0x110000);
    }
}

// Exactly as long as what it holds, so that a read beyond the end is found.
struct Text {
    int width = below(4) ? 1 << below(3) : 0;  // 0: UTF-8, sound or not
    size_t bytes_each = std::max(width, 1);
    size_t length = below(5) ? below(90) : below(5000);
    std::unique_ptr<char[]> bytes{new char[length * bytes_each]};

    Text() {
        const uint32_t kind = below(4);
        for (size_t i = 0; i < length; ++i) {
            const uint32_t c = character(kind);
            std::memcpy(bytes.get() + i * bytes_each, &c, bytes_each);
        }
    }
};

void check(bool holds, const char *what) {
    if (holds) return;
    std::printf("%s\n", what);
    std::abort();
}

Settings random_settings() {
    const uint32_t columns[] = {0, 0, 1, 7, 1u << 20, 3000001};
    Settings settings{};
    settings.analyzer = static_cast<Analyzer>(below(3));
    settings.by_spaces = settings.analyzer != Analyzer::words || below(4) == 0;
    settings.from_two = below(2);
    settings.singles = settings.analyzer == Analyzer::words && below(3) == 0;
    settings.least = 1 + below(4);
    settings.most = settings.least + below(4);
    settings.n_hashed = columns[below(6)];
    settings.signs = below(2);
    settings.once = below(2);
    return settings;
}

// The terms sorted, as single words' are by their bytes; every third has no column.
std::vector<int32_t> columns_of(const Lexicon &lexicon, bool single) {
    const std::vector<uint8_t> wanted(lexicon.size(), 1);
    std::vector<int32_t> order(lexicon.size()), columns(lexicon.size() + 1, -1);
    if (!order.empty()) sort_numbers(lexicon, wanted.data(), order.data());
    for (size_t i = 1; single && i < order.size(); ++i) {
        std::string before, after;
        lexicon.spell(order[i - 1], before), lexicon.spell(order[i], after);
        check(before < after, "terms are out of order");
    }
    for (size_t i = 0; i < order.size(); ++i) columns[order[i]] = i % 3 ? static_cast<int>(i) : -1;
    return columns;
}

// A lexicon of the terms that are spelled has them, and no others; of any bytes it has what it may.
void respell(const Lexicon &lexicon, bool as_words) {
    Lexicon again;
    for (uint32_t i = 0; i < lexicon.size(); ++i) {
        std::string term;
        lexicon.spell(i, term);
        // Exactly as long as what may be read.
        std::vector<char> bytes(term.begin(), term.end());
        bytes.resize(term.size() + PADDING);
        check(again.insert_term(bytes.data(), term.size(), as_words) == i, "a term has changed");
    }
    const Text any;
    std::vector<char> bytes(any.bytes.get(), any.bytes.get() + any.length);
    bytes.resize(any.length + PADDING);
    again.insert_term(bytes.data(), any.length, below(2));
}

// Two scanners of one pass count what they count alone, and the weights have the room they need.
size_t scan_families(const std::vector<Document> &documents, const Unicode &unicode) {
    const int64_t n = documents.size();
    Settings settings[2] = {random_settings(), random_settings()};
    const Analyzer analyzers[2] = {Analyzer::words, Analyzer::within_words};
    Lexicon lexicons[2], alone[2];
    std::vector<std::unique_ptr<Scanner>> scanners;
    std::vector<std::unique_ptr<Rows>> rows, expected;
    for (int i = 0; i < 2; ++i) {
        settings[i].analyzer = analyzers[i];
        settings[i].by_spaces = i == 1 || below(4) == 0;
        settings[i].singles = i == 0 && !settings[i].by_spaces && below(2);
        settings[i].n_hashed = 0;
        settings[i].once = false;
        expected.push_back(std::make_unique<Rows>(Type::int32));
        Scanner(settings[i], unicode, alone[i], nullptr, nullptr, 0)
            .scan(documents.data(), n, *expected[i]);
        settings[i].in_order = true;
        rows.push_back(std::make_unique<Rows>(Type::int32));
        scanners.push_back(std::make_unique<Scanner>(settings[i], unicode, lexicons[i], nullptr,
                                                     nullptr, 0));
    }
    scanners[1]->scan_families(documents.data(), n, *rows[1], *scanners[0], *rows[0]);
    std::vector<int64_t> item_ends{0};
    for (size_t i = 0; i < scanners[1]->ends_of_ngrams().size(); ++i)
        item_ends.push_back(scanners[1]->ends_of_ngrams()[i]);
    std::vector<Family<float>> families;
    std::vector<std::vector<int32_t>> columns(2), frequencies(2);
    std::vector<std::vector<float>> idf(2);
    int64_t room = 0;
    for (int i = 0; i < 2; ++i) {
        const int64_t n_terms = lexicons[i].size();
        check(lexicons[i].size() == alone[i].size(), "terms of a family differ");
        const auto *items = reinterpret_cast<int32_t *>(scanners[1]->ngrams().data());
        const Counted counted{reinterpret_cast<int32_t *>(rows[i]->values.data()),
                              rows[i]->columns.data(), rows[i]->ends.data(), i ? items : nullptr,
                              item_ends.data(), static_cast<int64_t>(rows[i]->columns.size()) - 1};
        frequencies[i].resize(n_terms);
        idf[i].assign(n_terms, 1);
        count_rows(counted, n, n_terms, frequencies[i].data());
        int64_t n_entries = 0;
        for (int64_t term = 0; term < n_terms; ++term) {
            columns[i].push_back(term % 3 ? static_cast<int32_t>(term) : -1);
            n_entries += frequencies[i][term];
            room += term % 3 ? frequencies[i][term] : 0;
        }
        check(n_entries == static_cast<int64_t>(expected[i]->columns.size()),
              "document frequencies differ");
        families.push_back({counted, n_terms, columns[i].data(), idf[i].data(), 0});
    }
    std::vector<int32_t> found(room);
    std::vector<float> values(room), logs(1 + below(9), 1);
    std::vector<int64_t> ends(n);
    Weighing<float> weighing(logs.data(), logs.size(), static_cast<int>(below(3)));
    check(weighing.weigh(families, n, room, found.data(), values.data(), ends.data()) == room,
          "entries differ");
    if (room) {
        Weighing<float> narrow(logs.data(), logs.size(), 0);
        std::vector<float> fewer(room - 1);
        check(narrow.weigh(families, n, room - 1, found.data(), fewer.data(), ends.data()) == -1,
              "there is no room");
    }
    return room;
}

size_t run_case() {
    const Settings settings = random_settings();
    const Unicode unicode{lower, is_word, is_space};
    const std::vector<Text> texts(below(6));
    std::vector<Document> documents;
    for (const Text &text : texts)
        documents.push_back({text.bytes.get(), static_cast<int64_t>(text.length), text.width,
                             below(2) == 1});
    const int64_t n = documents.size();
    const size_t n_weights = scan_families(documents, unicode);
    Lexicon lexicon, stop_words;
    stop_words.insert(key_of("aa\0\0\0\0\0\0\0\0", 2));
    Rows rows(static_cast<Type>(below(4)));
    rows.reserve(below(2) * below(5000));
    Scanner scanner(settings, unicode, lexicon, below(2) ? &stop_words : nullptr, nullptr, 0);
    scanner.scan(documents.data(), n, rows);
    if (settings.n_hashed || !lexicon.size()) return rows.columns.size() + n_weights;
    const bool single = !settings.by_spaces || settings.analyzer != Analyzer::words;
    const std::vector<int32_t> columns = columns_of(lexicon, single);
    Scanner knowing(settings, unicode, lexicon, nullptr, columns.data(), lexicon.size());
    Rows known(Type::float64);
    knowing.scan(documents.data(), n, known);
    Lexicon other;
    Array<uint32_t> numbers;
    other.absorb(lexicon, numbers);
    check(other.size() == lexicon.size(), "terms were lost");
    respell(lexicon, settings.analyzer == Analyzer::words && !settings.by_spaces);
    return rows.columns.size() + known.columns.size() + n_weights;
}

}  // namespace

int main(int, char **arguments) {
    random_bits.seed(std::strtoull(arguments[1], nullptr, 10));
    size_t n_entries = 0;
    for (long i = std::atol(arguments[2]); i > 0; --i) n_entries += run_case();
    std::printf("%zu entries\n", n_entries);
}

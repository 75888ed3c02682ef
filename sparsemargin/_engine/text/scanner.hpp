// Conversion of texts to rows of counts of word n-grams or character n-grams. Columns are numbers
// of a lexicon, or hashes. This code does not use Python objects.
//
// The order of features is that of scikit-learn: first all words of a text, then all pairs of
// neighbours, and so on. The same holds for n-grams of characters. N-grams within words are listed
// word by word.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "characters.hpp"
#include "hashes.hpp"
#include "lexicon.hpp"
#include "memory.hpp"
#include "rows.hpp"

namespace sparsemargin::text {

enum class Analyzer { words, characters, within_words };

struct Settings {
    Analyzer analyzer;
    bool by_spaces;  // words are separated by whitespace
    bool from_two;   // words have at least two characters
    bool singles;    // other characters that are no spaces are words, too
    int64_t least, most;  // smallest and largest length of n-grams
    uint32_t n_hashed;    // if above 0, columns are hashes modulo this number
    bool signs;           // counts have the signs of their hashes
    bool once;            // each feature counts at most 1 in a text
    bool in_order;        // rows are in the order of the text; see `scan_families`
};

class Scanner {
  public:
    // Without `columns`, new features are added to the lexicon, and their columns are its numbers.
    // Otherwise `columns` contains the column of each number, or -1 for features without column.
    Scanner(const Settings &settings, Lexicon &lexicon, const Lexicon *stop_words,
            const int32_t *columns, int64_t n_columns)
        : settings_(settings),
          lowered_(settings.by_spaces),
          lexicon_(lexicon),
          stop_words_(stop_words),
          columns_(columns),
          counts_(settings.once, settings.in_order),
          word_counts_(false, settings.in_order) {
        if (settings.n_hashed && !(settings.n_hashed & (settings.n_hashed - 1))) {
            mask_ = settings.n_hashed - 1;
        }
        counts_.make_room(columns ? n_columns : settings.n_hashed);
    }

    // Returns whether a text contained a lone surrogate, which valid UTF-8 cannot contain.
    bool has_surrogate() const { return has_surrogate_; }

    void scan(const Document *texts, int64_t n, Rows &rows) {
        for (int64_t i = 0; i < n; ++i) {
            lowered_.read(texts[i]);
            has_surrogate_ |= lowered_.has_surrogate();
            switch (settings_.analyzer) {
                case Analyzer::words: count_words(); break;
                case Analyzer::characters: count_characters(); break;
                case Analyzer::within_words: count_within_words();
            }
            rows.add(counts_);
        }
    }

    // Adds rows of two scanners, this one for n-grams within words, the other for words. Both have
    // `in_order`. Rows of this scanner count words separated by whitespace. The n-grams of such a
    // word, and the words that the other scanner finds in it, are looked up when it first occurs.
    void scan_families(const Document *texts, int64_t n, Rows &rows, Scanner &words,
                       Rows &word_rows) {
        for (int64_t i = 0; i < n; ++i) {
            lowered_.read(texts[i]);
            words.words_.clear();
            each_whole_word([&](uint32_t word, const Key &key) {
                if (word == words.ends_of_tokens_.size()) words.remember_tokens(key);
                const uint32_t start = word ? words.ends_of_tokens_[word - 1] : 0;
                for (uint32_t k = start; k < words.ends_of_tokens_[word]; ++k) {
                    words.words_.push_back(words.tokens_[k]);
                }
            });
            rows.add(word_counts_);
            words.count_tokens();
            word_rows.add(words.counts_);
        }
        remember_all();
    }

    // The n-grams of all words of `scan_families`, and the end of those of each word.
    Array<uint32_t> &ngrams() { return ngrams_; }
    Array<int64_t> &ends_of_ngrams() { return ends_of_ngrams_; }

  private:
    // Number of keys that are looked up together. Their table lines are prefetched first.
    static constexpr int BATCH = 128;
    // Largest number of n-grams that are stored for words.
    static constexpr size_t MOST_REMEMBERED = size_t(1) << 26;

    // A feature of a row: its number or its column. For hashes it is two times the column, plus 1
    // if the feature counts -1.
    using Feature = uint32_t;

    Feature feature_of(uint32_t number) const {
        if (!columns_ || number == NONE) return number;
        return static_cast<uint32_t>(columns_[number]);
    }

    // Returns the hashed feature, without a branch on the sign, which would often be mispredicted.
    Feature hashed(const char *p, uint32_t size) const {
        const uint32_t hash = murmur(p, size), sign = 0u - (hash >> 31);
        const uint32_t positive = (hash ^ sign) - sign;
        uint32_t column = mask_ ? positive & mask_ : positive % settings_.n_hashed;
        // -2**31 has no positive counterpart. scikit-learn uses the column of its neighbour.
        if (positive == 1u << 31) column = (INT32_MAX - (settings_.n_hashed - 1)) % settings_.n_hashed;
        return column << 1 | (sign & settings_.signs);
    }

    void count(Feature feature, int32_t by = 1) {
        if (settings_.n_hashed) {
            counts_.add(feature >> 1, feature & 1 ? -by : by);
        } else if (feature != NONE) {
            counts_.add(feature, by);
        }
    }

    // Makes room for counts of all current numbers of the lexicon.
    void make_room() {
        if (!columns_ && !settings_.n_hashed) counts_.make_room(lexicon_.size());
    }

    // Looks up keys in batches. `take` is called with their numbers or hashed features, in order.
    template <class Take>
    struct Lookup {
        Scanner &scanner;
        Take take;
        int n = 0;
        Key keys[BATCH];

        // The keys are left uninitialised.
        Lookup(Scanner &scanner, Take take) : scanner(scanner), take(take) {}

        // Keys that are not `wanted` are prefetched too, which is faster than a branch.
        void add(const char *p, uint32_t size, bool wanted = true) {
            keys[n] = key_of(p, size);
            if (!scanner.settings_.n_hashed) scanner.lexicon_.prefetch(keys[n]);
            n += wanted;
            if (n == BATCH) flush();
        }

        void flush() {
            if (!n) return;
            uint32_t found[BATCH];
            for (int i = 0; i < n; ++i) found[i] = scanner.look_up(keys[i]);
            take(found, n);
            n = 0;
        }
    };

    uint32_t look_up(const Key &key) {
        if (settings_.n_hashed) return hashed(key.start, key.size);
        return columns_ ? lexicon_.find(key) : lexicon_.insert(key);
    }

    void count_all(uint32_t *found, int n) {
        make_room();
        for (int i = 0; i < n; ++i) {
            if (!settings_.n_hashed) {
                found[i] = feature_of(found[i]);
                if (found[i] != NONE) counts_.prefetch(found[i]);
            } else {
                counts_.prefetch(found[i] >> 1);
            }
        }
        for (int i = 0; i < n; ++i) count(found[i]);
    }

    // Calls `take` with each word of the text, and whether it counts as a feature.
    template <class Take>
    void each_word(Take take) {
        lowered_.find_edges(edges_);
        if (settings_.singles) lowered_.add_singles(edges_, all_edges_);
        const Array<uint32_t> &edges = settings_.singles ? all_edges_ : edges_;
        const char *text = lowered_.bytes();
        for (size_t i = 0; i < edges.size(); i += 2) {
            const char *p = text + edges[i];
            const uint32_t size = edges[i + 1] - edges[i];
            bool wanted = !settings_.from_two || next_character(p) < p + size;
            if (stop_words_) wanted = wanted && stop_words_->find(key_of(p, size)) == NONE;
            take(p, size, wanted);
        }
    }

    void count_words() {
        if (settings_.n_hashed && settings_.most > 1) return hash_word_ngrams();
        words_.clear();
        auto take = [this](uint32_t *found, int n) {
            std::memcpy(words_.extend(n), found, n * sizeof(uint32_t));
        };
        Lookup<decltype(take)> lookup(*this, take);
        each_word([&](const char *p, uint32_t size, bool wanted) { lookup.add(p, size, wanted); });
        lookup.flush();
        count_tokens();
    }

    // Counts n-grams of words. Each n-gram is a pair of a shorter n-gram and a word.
    void count_chains() {
        const size_t n_words = words_.size();
        if (!n_words) return;
        chains_.clear();
        std::memcpy(chains_.extend(n_words), words_.data(), n_words * sizeof(uint32_t));
        for (int64_t n = 2; n <= settings_.most && n <= static_cast<int64_t>(n_words); ++n) {
            const size_t n_chains = n_words - n + 1;
            const uint32_t *last = words_.data() + n - 1;
            for (size_t first = 0; first < n_chains; first += BATCH) {
                const int size = static_cast<int>(std::min<size_t>(BATCH, n_chains - first));
                extend_chains(chains_.data() + first, last + first, size);
                if (n < settings_.least) continue;
                uint32_t found[BATCH];
                std::memcpy(found, chains_.data() + first, size * sizeof(uint32_t));
                count_all(found, size);
            }
        }
    }

    void extend_chains(uint32_t *chains, const uint32_t *last, int n) {
        for (int i = 0; i < n; ++i) lexicon_.prefetch_pair(Lexicon::pair_of(chains[i], last[i]));
        for (int i = 0; i < n; ++i) {
            const uint64_t pair = Lexicon::pair_of(chains[i], last[i]);
            if (chains[i] == NONE || last[i] == NONE) {
                chains[i] = NONE;
            } else {
                chains[i] = columns_ ? lexicon_.find_pair(pair) : lexicon_.insert_pair(pair);
            }
        }
    }

    // Copies the words next to each other, so that any n consecutive words are one string.
    void hash_word_ngrams() {
        joined_.clear();
        edges_of_words_.clear();
        each_word([&](const char *p, uint32_t size, bool wanted) {
            if (!wanted) return;
            edges_of_words_.push_back(static_cast<uint32_t>(joined_.size()));
            joined_.reserve(joined_.size() + size + 1 + PADDING);
            char *to = joined_.extend(size + 1);
            for (uint32_t i = 0; i < size; i += 8) store_word(to + i, load_word(p + i));
            to[size] = ' ';
        });
        edges_of_words_.push_back(static_cast<uint32_t>(joined_.size()));
        const auto n_words = static_cast<int64_t>(edges_of_words_.size()) - 1;
        uint32_t found[BATCH];
        for (int64_t n = settings_.least; n <= settings_.most && n <= n_words; ++n) {
            for (int64_t first = 0; first + n <= n_words; first += BATCH) {
                const auto size = static_cast<int>(std::min<int64_t>(BATCH, n_words - n + 1 - first));
                for (int i = 0; i < size; ++i) {
                    const uint32_t *edge = edges_of_words_.data() + first + i;
                    found[i] = hashed(joined_.data() + edge[0], edge[n] - 1 - edge[0]);
                }
                count_all(found, size);
            }
        }
    }

    // Copies the text, with each run of spaces as one space, and stores the starts of characters.
    void collapse() {
        joined_.clear();
        starts_.clear();
        const char *text = lowered_.bytes(), *stop = text + lowered_.size();
        for (const char *p = text; p < stop;) {
            const char *next = next_character(p);
            bool several = false;
            if (!lowered_.in_token(p - text)) {
                while (next < stop && !lowered_.in_token(next - text)) {
                    next = next_character(next);
                    several = true;
                }
            }
            starts_.push_back(static_cast<uint32_t>(joined_.size()));
            if (several) {
                joined_.push_back(' ');
            } else {
                std::memcpy(joined_.extend(next - p), p, next - p);
            }
            p = next;
        }
        starts_.push_back(static_cast<uint32_t>(joined_.size()));
        joined_.reserve(joined_.size() + PADDING);
    }

    void count_characters() {
        collapse();
        auto take = [this](uint32_t *found, int n) { count_all(found, n); };
        Lookup<decltype(take)> lookup(*this, take);
        add_ngrams(lookup);
        lookup.flush();
    }

    // Adds the n-grams of the characters that start at `starts_`.
    template <class Lookup>
    void add_ngrams(Lookup &lookup) {
        const auto n_characters = static_cast<int64_t>(starts_.size()) - 1;
        for (int64_t n = settings_.least; n <= settings_.most && n <= n_characters; ++n) {
            for (int64_t i = 0; i + n <= n_characters; ++i) {
                lookup.add(joined_.data() + starts_[i], starts_[i + n] - starts_[i]);
            }
        }
    }

    // Counts character n-grams within words. The n-grams of a word are looked up once and stored.
    // For each text they are counted once, times the number of occurrences of the word.
    void count_within_words() {
        if (ngrams_.size() > MOST_REMEMBERED) forget_words();
        each_whole_word([](uint32_t, const Key &) {});
        remember_all();
        make_room();
        word_counts_.drain([this](int32_t word, int32_t times) {
            for (int64_t i = word ? ends_of_ngrams_[word - 1] : 0; i < ends_of_ngrams_[word]; ++i) {
                count(ngrams_[i], times);
            }
        });
    }

    // Counts the words that are separated by whitespace, and calls `take` with each of them.
    template <class Take>
    void each_whole_word(Take take) {
        lowered_.find_edges(edges_);
        Key keys[BATCH];
        for (size_t first = 0; first < edges_.size(); first += 2 * BATCH) {
            const size_t n = std::min<size_t>(BATCH, (edges_.size() - first) / 2);
            for (size_t i = 0; i < n; ++i) {
                const uint32_t *edge = edges_.data() + first + 2 * i;
                keys[i] = key_of(lowered_.bytes() + edge[0], edge[1] - edge[0]);
                remembered_.prefetch(keys[i]);
            }
            for (size_t i = 0; i < n; ++i) {
                const uint32_t word = remembered_.insert(keys[i]);
                word_counts_.make_room(remembered_.size());
                word_counts_.add(word, 1);
                take(word, keys[i]);
            }
        }
    }

    void remember_tokens(const Key &whole) {
        lowered_.read({whole.start, whole.size, 0, false});
        each_word([this](const char *p, uint32_t size, bool wanted) {
            if (wanted) tokens_.push_back(lexicon_.insert(key_of(p, size)));
        });
        ends_of_tokens_.push_back(static_cast<uint32_t>(tokens_.size()));
    }

    // Counts the words that are in `words_`, and their n-grams.
    void count_tokens() {
        uint32_t found[BATCH];
        for (size_t first = 0; settings_.least == 1 && first < words_.size(); first += BATCH) {
            const auto n = static_cast<int>(std::min<size_t>(BATCH, words_.size() - first));
            std::copy_n(words_.data() + first, n, found);
            count_all(found, n);
        }
        if (settings_.most > 1) count_chains();
    }

    void forget_words() {
        remembered_.clear();
        ngrams_.clear();
        ends_of_ngrams_.clear();
    }

    // Looks up the n-grams of all words that are new. The keys of several words are batched.
    void remember_all() {
        constexpr size_t ENOUGH = 1 << 14;
        auto take = [this](uint32_t *found, int n) {
            for (int i = 0; i < n; ++i) {
                ngrams_.push_back(settings_.n_hashed ? found[i] : feature_of(found[i]));
            }
        };
        Lookup<decltype(take)> lookup(*this, take);
        joined_.clear();
        for (auto word = static_cast<uint32_t>(ends_of_ngrams_.size()); word < remembered_.size();
             ++word) {
            const std::string_view text = remembered_.string(word);
            if (joined_.size() + text.size() + 2 > ENOUGH) {
                lookup.flush();
                joined_.clear();
            }
            joined_.reserve(std::max<size_t>(ENOUGH, text.size() + 2) + PADDING);
            list_ngrams(text, lookup);
            ends_of_ngrams_.push_back(static_cast<int64_t>(ngrams_.size()) + lookup.n);
        }
        lookup.flush();
    }

    template <class Lookup>
    void list_ngrams(std::string_view text, Lookup &lookup) {
        const auto start = static_cast<uint32_t>(joined_.size());
        starts_.clear();
        joined_.push_back(' ');
        std::memcpy(joined_.extend(text.size()), text.data(), text.size());
        joined_.push_back(' ');
        for (uint32_t at = start; at < joined_.size();
             at = static_cast<uint32_t>(next_character(joined_.data() + at) - joined_.data())) {
            starts_.push_back(at);
        }
        starts_.push_back(static_cast<uint32_t>(joined_.size()));
        // A word that is shorter than the shortest n-gram is a feature as a whole.
        if (static_cast<int64_t>(starts_.size()) - 1 < settings_.least) {
            lookup.add(joined_.data() + start, static_cast<uint32_t>(text.size() + 2));
        } else {
            add_ngrams(lookup);
        }
    }

    Settings settings_;
    Lowered lowered_;
    Lexicon &lexicon_;
    const Lexicon *stop_words_;
    const int32_t *columns_;
    uint32_t mask_ = 0;  // n_hashed - 1 if n_hashed is a power of two, else 0
    bool has_surrogate_ = false;
    Counts counts_, word_counts_;
    Array<uint32_t> edges_, all_edges_, words_, chains_, edges_of_words_, starts_;
    Array<char> joined_;
    Lexicon remembered_;
    Array<Feature> ngrams_;
    Array<int64_t> ends_of_ngrams_;
    Array<uint32_t> tokens_, ends_of_tokens_;
};

}  // namespace sparsemargin::text

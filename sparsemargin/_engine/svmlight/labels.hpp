// The distinct labels of a text, numbered in the order of their first occurrence.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "numbers.hpp"

namespace sparsemargin {

class LabelTable {
  public:
    int64_t size() const { return static_cast<int64_t>(texts_.size()); }
    const std::string &text(int64_t id) const { return texts_[id]; }
    double number(int64_t id) const { return numbers_[id]; }  // NaN for a word

    // Finds a recently used short label; eight bytes from its start must be readable.
    bool recall(Token token, int32_t &id) const {
        if (token.size() > 8) return false;
        const Recent &recent = recent_[index_of(word_of(token))];
        id = recent.id;
        return recent.word == word_of(token) && recent.size == token.size();
    }

    // Finds or adds any label; eight bytes from its start must be readable.
    [[gnu::noinline]] int32_t look_up(Token token) {
        if (token.size() > LONGEST_NUMBER) fail(Code::overlong, token);
        const std::string_view text(token.start, token.size());
        double number;
        const bool is_number = read_real(token, number);
        if (is_number && !std::isfinite(number)) fail(Code::not_finite, token);
        if (!is_number && has_invisible(text)) fail(Code::invisible, token);
        const int32_t id = is_number ? id_of_number(text, number) : id_of_word(text);
        if (token.size() <= 8) {
            recent_[index_of(word_of(token))] = {word_of(token), token.size(), id};
        }
        return id;
    }

  private:
    struct Recent {
        uint64_t word = 0;
        int64_t size = 0;
        int32_t id = 0;
    };

    // Returns whether a word has a byte-order mark or a no-break space, which would make it look
    // like another.
    static bool has_invisible(std::string_view word) {
        return word.find("\xEF\xBB\xBF") != word.npos || word.find("\xC2\xA0") != word.npos;
    }

    static uint64_t word_of(Token token) {
        return load_word(token.start) << (64 - 8 * token.size());
    }

    static uint64_t index_of(uint64_t word) { return (word * 0x9E3779B97F4A7C15u) >> 58; }

    int32_t id_of_number(std::string_view text, double number) {
        const auto [at, fresh] = by_number_.try_emplace(number, next());
        if (fresh) append(text, number);
        return at->second;
    }

    int32_t id_of_word(std::string_view word) {
        const auto at = by_word_.find(word);
        if (at != by_word_.end()) return at->second;
        const int32_t id = next();
        append(word, std::numeric_limits<double>::quiet_NaN());
        by_word_.emplace(texts_.back(), id);
        return id;
    }

    int32_t next() const { return static_cast<int32_t>(texts_.size()); }

    void append(std::string_view text, double number) {
        texts_.emplace_back(text);
        numbers_.push_back(number);
    }

    std::array<Recent, 64> recent_;
    std::unordered_map<double, int32_t> by_number_;
    std::unordered_map<std::string_view, int32_t> by_word_;
    std::deque<std::string> texts_;  // unlike a vector, it never moves its strings
    std::vector<double> numbers_;
};

}  // namespace sparsemargin

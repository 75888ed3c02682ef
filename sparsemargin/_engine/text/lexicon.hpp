// Numbers for strings and for pairs of numbers, in the order of their first occurrence.
//
// A pair is an n-gram of words: the number of its prefix without the last word, and the number of
// the last word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "hashes.hpp"
#include "memory.hpp"

namespace sparsemargin::text {

constexpr uint32_t NONE = UINT32_MAX;
constexpr uint32_t MOST_NUMBERS = INT32_MAX;

// Hash table whose slots are ordered by the hash. A table of twice the size has the same order, so
// that a growing table is copied sequentially.
class Slots {
  public:
    struct Slot {
        uint64_t key;
        uint32_t tag;
        uint32_t number;  // number + 1, or 0 for a free slot
    };

    Slots() = default;
    Slots(const Slots &) = delete;
    Slots &operator=(const Slots &) = delete;
    ~Slots() { clear(); }

    void clear() {
        std::free(slots_);
        slots_ = nullptr;
        n_ = 0;
    }

    void prefetch(uint64_t hash) const {
        if (slots_) __builtin_prefetch(slots_ + (hash >> shift_));
    }

    // Returns the slot of the key, or the free slot in which it belongs.
    template <class IsIt>
    Slot *find(uint64_t hash, IsIt is_it) const {
        for (uint64_t i = hash >> shift_;; i = (i + 1) & mask_) {
            if (!slots_[i].number || is_it(slots_[i])) return slots_ + i;
        }
    }

    uint64_t size() const { return n_; }

    // Makes room for `more` keys. At most five of eight slots are in use.
    template <class HashOf>
    void make_room(HashOf hash_of, uint64_t more = 1) {
        const uint64_t n_old = slots_ ? mask_ + 1 : 0;
        if (n_ + more <= n_old / 8 * 5) return;
        uint64_t n_new = 1024;
        while (n_ + more > n_new / 8 * 5) n_new *= 2;
        auto *grown = static_cast<Slot *>(std::calloc(n_new, sizeof(Slot)));
        if (!grown) throw std::bad_alloc();
        advise(grown, n_new * sizeof(Slot));
        Slot *old = slots_;
        slots_ = grown;
        mask_ = n_new - 1;
        shift_ = 64 - __builtin_ctzll(n_new);
        for (uint64_t i = 0; i < n_old; ++i) {
            if (old[i].number) *find(hash_of(old[i]), [](const Slot &) { return false; }) = old[i];
        }
        std::free(old);
    }

    void fill(Slot *slot, uint64_t key, uint32_t tag, uint32_t number) {
        *slot = {key, tag, number + 1};
        ++n_;
    }

  private:
    Slot *slots_ = nullptr;
    uint64_t mask_ = 0;
    int shift_ = 63;
    uint64_t n_ = 0;
};

class Lexicon {
  public:
    size_t size() const { return nodes_.size(); }
    void prefetch(const Key &key) const { strings_.prefetch(key.hash); }
    void prefetch_pair(uint64_t pair) const { pairs_.prefetch(hash_of_pair(pair)); }
    bool has_pairs() const { return pairs_.size(); }

    static uint64_t pair_of(uint32_t rest, uint32_t last) { return uint64_t(rest) << 32 | last; }

    uint32_t find(const Key &key) const {
        return strings_.size() ? number_of(slot_of(key)) : NONE;
    }

    uint32_t find_pair(uint64_t pair) const {
        return pairs_.size() ? number_of(slot_of_pair(pair)) : NONE;
    }

    uint32_t insert(const Key &key) {
        make_room_for_strings(1);
        Slots::Slot *slot = slot_of(key);
        if (!slot->number) {
            const uint32_t number = add_node(STRING | arena_.size());
            char *p = arena_.extend(sizeof(uint32_t) + key.size);
            std::memcpy(p, &key.size, sizeof(uint32_t));
            std::memcpy(p + sizeof(uint32_t), key.start, key.size);
            arena_.reserve(arena_.size() + PADDING);
            strings_.fill(slot, key.first, tag_of(key), number);
        }
        return slot->number - 1;
    }

    uint32_t insert_pair(uint64_t pair) {
        make_room_for_pairs(1);
        Slots::Slot *slot = slot_of_pair(pair);
        if (!slot->number) pairs_.fill(slot, pair, 0, add_node(pair));
        return slot->number - 1;
    }

    // Adds a term and returns its number. With `as_words` it consists of words separated by spaces.
    // Returns NONE if a word is empty, because no text contains it. PADDING bytes after the term
    // must be readable.
    uint32_t insert_term(const char *p, uint32_t size, bool as_words) {
        uint32_t number = NONE;
        for (const char *stop = p + size;; ++p) {
            const char *end = as_words ? std::find(p, stop, ' ') : stop;
            if (end == p) return NONE;
            const uint32_t word = insert(key_of(p, static_cast<uint32_t>(end - p)));
            number = number == NONE ? word : insert_pair(pair_of(number, word));
            if (end == stop) return number;
            p = end;
        }
    }

    bool is_string(uint32_t number) const { return nodes_[number] & STRING; }
    uint32_t rest(uint32_t pair) const { return static_cast<uint32_t>(nodes_[pair] >> 32); }
    uint32_t last(uint32_t pair) const { return static_cast<uint32_t>(nodes_[pair]); }

    // Returns a string. At least eight bytes from its start are readable.
    std::string_view string(uint32_t number) const {
        const char *p = arena_.data() + (nodes_[number] & ~STRING);
        uint32_t size;
        std::memcpy(&size, p, sizeof(uint32_t));
        return {p + sizeof(uint32_t), size};
    }

    Key key(uint32_t number) const {
        const std::string_view text = string(number);
        return key_of(text.data(), static_cast<uint32_t>(text.size()));
    }

    // Appends the term with this number to `out`, with spaces between the words of an n-gram.
    void spell(uint32_t number, std::string &out) const {
        if (!is_string(number)) {
            spell(rest(number), out);
            out += ' ';
            number = last(number);
        }
        out += string(number);
    }

    // Adds all features of another lexicon in its order. `numbers[i]` becomes the number here of
    // its feature i.
    void absorb(const Lexicon &other, Array<uint32_t> &numbers) {
        make_room_for_strings(other.strings_.size());
        make_room_for_pairs(other.pairs_.size());
        for (uint32_t i = 0; i < other.size(); ++i) {
            if (i + AHEAD < other.size()) send_for(other, i + AHEAD, numbers);
            numbers.push_back(
                other.is_string(i)
                    ? insert(other.key(i))
                    : insert_pair(pair_of(numbers[other.rest(i)], numbers[other.last(i)])));
        }
    }

    // Prefetches the slot of a feature that is added soon.
    void send_for(const Lexicon &other, uint32_t number, const Array<uint32_t> &numbers) const {
        if (other.is_string(number)) return prefetch(other.key(number));
        const uint32_t rest = other.rest(number), last = other.last(number);
        if (std::max(rest, last) >= numbers.size()) return;
        prefetch_pair(pair_of(numbers[rest], numbers[last]));
    }

    void clear() {
        nodes_.clear();
        arena_.clear();
        strings_.clear();
        pairs_.clear();
    }

  private:
    static constexpr uint64_t STRING = uint64_t(1) << 63;
    static constexpr uint32_t AHEAD = 16;

    void make_room_for_strings(uint64_t more) {
        strings_.make_room([this](const Slots::Slot &slot) { return hash_of(slot); }, more);
    }

    void make_room_for_pairs(uint64_t more) {
        pairs_.make_room([](const Slots::Slot &slot) { return hash_of_pair(slot.key); }, more);
    }

    static uint32_t number_of(const Slots::Slot *slot) { return slot->number - 1; }

    // A string of up to eight bytes is identified by its bytes and the tag. For longer strings, equal
    // tags require a comparison.
    static uint32_t tag_of(const Key &key) {
        return std::min<uint32_t>(key.size, 255) << 24 | (key.hash & 0xFFFFFF);
    }

    Slots::Slot *slot_of(const Key &key) const {
        const uint32_t tag = tag_of(key);
        return strings_.find(key.hash, [&](const Slots::Slot &slot) {
            return slot.key == key.first && slot.tag == tag &&
                   (key.size <= 8 || is_same(slot.number - 1, key));
        });
    }

    Slots::Slot *slot_of_pair(uint64_t pair) const {
        return pairs_.find(hash_of_pair(pair),
                           [pair](const Slots::Slot &slot) { return slot.key == pair; });
    }

    bool is_same(uint32_t number, const Key &key) const {
        const std::string_view text = string(number);
        return text.size() == key.size &&
               !std::memcmp(text.data() + 8, key.start + 8, text.size() - 8);
    }

    uint64_t hash_of(const Slots::Slot &slot) const {
        const uint32_t size = slot.tag >> 24;
        if (size <= 8) return key_of(reinterpret_cast<const char *>(&slot.key), size).hash;
        return key(slot.number - 1).hash;
    }

    uint32_t add_node(uint64_t node) {
        if (nodes_.size() >= MOST_NUMBERS) throw std::overflow_error("more than 2**31 - 1 features");
        nodes_.push_back(node);
        return static_cast<uint32_t>(nodes_.size() - 1);
    }

    Slots strings_, pairs_;
    Array<uint64_t> nodes_;
    Array<char> arena_;
};

}  // namespace sparsemargin::text

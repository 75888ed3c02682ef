// Conversion of a text, from CPython's buffers, to lowercase UTF-8 with one bit for each byte: it
// says whether the byte is part of a token.
//
// Lone surrogates are encoded like other code points, so that bytes sort like code points. Python's
// functions classify code points and convert them to lowercase.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "memory.hpp"

namespace sparsemargin::text {

struct Document {
    const void *data;
    int64_t length;  // in characters, or in bytes for UTF-8
    int width;       // bytes per character: 1, 2 or 4; 0 means UTF-8
    bool lower;
};

// An encoded character. Bits 0 to 31: its UTF-8 bytes. From bit 32: their number. From bit 40: one
// bit for each byte, set if the character is part of a token. Bit 44: whether it is a surrogate.
using Written = uint64_t;

constexpr Written SURROGATE = Written(1) << 44;

inline int size_of(Written c) { return static_cast<int>(c >> 32) & 7; }
inline uint64_t token_bits(Written c) { return c >> 40 & 15; }

inline Written encode(uint32_t c) {
    if (c < 0x80) return Written(1) << 32 | c;
    if (c < 0x800) return Written(2) << 32 | 0x80C0 | c >> 6 | (c & 0x3F) << 8;
    if (c < 0x10000) {
        const Written surrogate = c >> 11 == 0x1B ? SURROGATE : 0;
        return surrogate | Written(3) << 32 | 0x8080E0 | c >> 12 | (c >> 6 & 0x3F) << 8 |
               (c & 0x3F) << 16;
    }
    return Written(4) << 32 | 0x808080F0 | c >> 18 | (c >> 12 & 0x3F) << 8 |
           (c >> 6 & 0x3F) << 16 | (c & 0x3F) << 24;
}

// Table of encoded characters, in pages of 256. A page is computed when it is first used.
class Characters {
  public:
    Characters(bool by_spaces, bool lower) : by_spaces_(by_spaces), lower_(lower) {}

    Written operator[](uint32_t c) {
        const Page *page = pages_[c >> 8].get();
        if (!page) page = make(c >> 8);
        return (*page)[c & 0xFF];
    }

  private:
    using Page = std::array<Written, 256>;

    [[gnu::noinline]] const Page *make(uint32_t number) {
        auto page = std::make_unique<Page>();
        for (uint32_t i = 0; i < 256; ++i) {
            const uint32_t given = number << 8 | i;
            const uint32_t c = lower_ ? Py_UNICODE_TOLOWER(given) : given;
            const bool is_word = c == '_' || Py_UNICODE_ISALNUM(c);
            const bool is_part = by_spaces_ ? !Py_UNICODE_ISSPACE(c) : is_word;
            const Written written = encode(c);
            (*page)[i] = written | (is_part ? (Written(1) << size_of(written)) - 1 : 0) << 40;
        }
        pages_[number] = std::move(page);
        return pages_[number].get();
    }

    bool by_spaces_, lower_;
    std::array<std::unique_ptr<Page>, 0x1100> pages_;
};

// The following functions process eight ASCII characters at once. `repeat(c)` has c in each byte.
// Sums of two bytes below 0x80 do not carry into the next byte.
constexpr uint64_t repeat(uint64_t c) { return c * 0x0101010101010101; }

constexpr uint64_t HIGH = repeat(0x80);

// Sets the high bit of each byte with a value from `first` to `last`.
constexpr uint64_t between(uint64_t word, uint64_t first, uint64_t last) {
    return (word + repeat(0x80 - first)) & ~(word + repeat(0x7F - last)) & HIGH;
}

constexpr uint64_t word_bytes(uint64_t word) {
    return between(word | repeat(0x20), 'a', 'z') | between(word, '0', '9') |
           between(word, '_', '_');
}

constexpr uint64_t space_bytes(uint64_t word) {
    return between(word, 9, 13) | between(word, 28, 32);
}

// Moves the high bit of byte i to bit i.
constexpr uint64_t gather(uint64_t high) { return (high >> 7) * 0x0102040810204080 >> 56; }

// Returns the start of the character after the one at `p`.
inline const char *next_character(const char *p) {
    const auto first = static_cast<unsigned char>(*p);
    return p + 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0);
}

// The UTF-8 bytes of one text at a time, with one bit per byte: whether it is part of a token.
class Lowered {
  public:
    explicit Lowered(bool by_spaces)
        : by_spaces_(by_spaces), as_written_(by_spaces, false), as_lower_(by_spaces, true) {}

    const char *bytes() const { return bytes_.data(); }
    size_t size() const { return size_; }

    // Returns whether the text contains a lone surrogate, which valid UTF-8 cannot contain.
    bool has_surrogate() const { return has_surrogate_; }

    void read(const Document &text) {
        const size_t room = static_cast<size_t>(text.length) * (text.width <= 1 ? 2 : 4);
        bytes_.clear();
        bytes_.extend(room + PADDING);
        bits_.clear();
        bits_.extend(room / 64 + 3);
        has_surrogate_ = false;
        Writer to{bytes_.data(), bits_.data()};
        switch (text.width) {
            case 0: to = read_bytes<true>(static_cast<const char *>(text.data), text, to); break;
            case 1: to = read_bytes<false>(static_cast<const char *>(text.data), text, to); break;
            case 2: to = read_wide(static_cast<const uint16_t *>(text.data), text, to); break;
            default: to = read_wide(static_cast<const uint32_t *>(text.data), text, to);
        }
        size_ = to.at - bytes_.data();
        std::memset(to.at, 0, PADDING);
        *to.bit_at++ = to.pending;
        *to.bit_at = 0;
    }

    // Stores the start and end of each token, alternately.
    void find_edges(Array<uint32_t> &edges) const {
        edges.clear();
        edges.reserve(size_ + 2);
        uint32_t *edge = edges.data();
        uint64_t before = 0;
        for (size_t i = 0; i <= size_ / 64; ++i) {
            const uint64_t bits = bits_[i];
            uint64_t turns = bits ^ (bits << 1 | before);
            before = bits >> 63;
            for (; turns; turns &= turns - 1) {
                *edge++ = static_cast<uint32_t>(i * 64 + __builtin_ctzll(turns));
            }
        }
        if (before) *edge++ = static_cast<uint32_t>(size_);
        edges.extend(edge - edges.data());
    }

    // Stores the tokens between `edges`, and each other character that is no space as a token.
    void add_singles(const Array<uint32_t> &edges, Array<uint32_t> &all) const {
        all.clear();
        uint32_t at = 0;
        for (size_t i = 0; i <= edges.size(); i += 2) {
            const auto next = i < edges.size() ? edges[i] : static_cast<uint32_t>(size_);
            while (at < next) {
                const char *p = bytes() + at, *stop = next_character(p);
                const auto end = static_cast<uint32_t>(stop - bytes());
                const uint32_t c = decoded(p, stop);
                if (!Py_UNICODE_ISSPACE(c)) {
                    all.push_back(at);
                    all.push_back(end);
                }
                at = end;
            }
            if (i == edges.size()) break;
            all.push_back(at);
            all.push_back(at = edges[i + 1]);
        }
    }

    bool in_token(size_t i) const { return bits_[i / 64] >> (i % 64) & 1; }

  private:
    // The state of writing is a local variable, so the compiler knows that writes through `at` do
    // not change it.
    struct Writer {
        char *at;
        uint64_t *bit_at, pending = 0;
        int n_pending = 0;

        // Appends the first `n` bytes of a word, and one bit for each.
        void add(uint64_t word, uint64_t bits, int n) {
            store_word(at, word);
            at += n;
            pending |= bits << n_pending;
            n_pending += n;
            if (n_pending >= 64) {
                *bit_at++ = pending;
                n_pending -= 64;
                pending = n_pending ? bits >> (n - n_pending) : 0;
            }
        }

        void add(Written c) { add(c, token_bits(c), size_of(c)); }
    };

    template <bool UTF8>
    Writer read_bytes(const char *p, const Document &text, Writer to) {
        const char *stop = p + text.length;
        const bool by_spaces = by_spaces_, lower = text.lower;
        Characters &characters = lower ? as_lower_ : as_written_;
        while (p < stop) {
            const int n = static_cast<int>(std::min<int64_t>(stop - p, 8));
            char last[8] = {};
            if (n < 8) std::memcpy(last, p, n);
            const uint64_t word = load_word(n < 8 ? last : p);
            if (!(word & HIGH)) {
                const uint64_t parts = by_spaces ? ~space_bytes(word) & HIGH : word_bytes(word);
                const uint64_t small = lower ? between(word, 'A', 'Z') >> 2 : 0;
                to.add(word | small, gather(parts) & ((1u << n) - 1), n);
                p += n;
                continue;
            }
            for (const char *end = p + n; p < end;) {
                const uint32_t c = UTF8 ? decoded(p, stop) : static_cast<unsigned char>(*p++);
                to.add(characters[c]);
            }
        }
        return to;
    }

    // Decodes the character at `p` and moves `p` to the next one.
    static uint32_t decoded(const char *&p, const char *stop) {
        const char *end = std::min(next_character(p), stop);
        const auto first = static_cast<unsigned char>(*p);
        uint32_t c = first < 0x80 ? first : first & (0x7F >> (end - p));
        while (++p < end) c = c << 6 | (static_cast<unsigned char>(*p) & 0x3F);
        return std::min<uint32_t>(c, 0x10FFFF);
    }

    template <class Char>
    Writer read_wide(const Char *p, const Document &text, Writer to) {
        Characters &characters = text.lower ? as_lower_ : as_written_;
        Written all = 0;
        for (const Char *stop = p + text.length; p < stop; ++p) {
            // Strings contain no larger code points. The limit protects reads beyond the table.
            const Written c = characters[std::min<uint32_t>(*p, 0x10FFFF)];
            all |= c;
            to.add(c);
        }
        has_surrogate_ = all & SURROGATE;
        return to;
    }

    bool by_spaces_;
    Characters as_written_, as_lower_;
    Array<char> bytes_;
    Array<uint64_t> bits_;
    size_t size_ = 0;
    bool has_surrogate_ = false;
};

}  // namespace sparsemargin::text

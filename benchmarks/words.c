// Lowercases, hashes and counts the words of ASCII text: a lower limit of a text scanner's time.
#include <stddef.h>
#include <stdint.h>

void count_words(const char *text, size_t n, int32_t *counts) {
    uint8_t lower[256] = {0};
    for (int c = 0; c < 128; ++c) {
        if (c >= 'A' && c <= 'Z') lower[c] = c + 32;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') lower[c] = c;
    }
    uint32_t hash = 2166136261u, length = 0;
    for (size_t i = 0; i <= n; ++i) {
        const uint8_t c = i < n ? lower[(uint8_t)text[i]] : 0;
        if (c) {
            hash = (hash ^ c) * 16777619u;
            ++length;
        } else {
            if (length > 1) ++counts[(hash ^ hash >> 20) & ((1 << 20) - 1)];
            hash = 2166136261u;
            length = 0;
        }
    }
}

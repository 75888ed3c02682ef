// Entries of a row, sorted by column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sparsemargin {

struct Entry {
    int64_t column;
    const char *start;  // in the text: tells occurrences apart, and their order
    double value;

    bool operator<(const Entry &other) const {
        return column != other.column ? column < other.column : start < other.start;
    }
};

// The entries of one row, in any order at first.
class GatheredRow {
  public:
    std::vector<Entry> entries;

    // Hashed columns are spread evenly, and others often nearly so: as many buckets as entries
    // leave little to sort within each.
    void sort() {
        if (entries.size() < FEW) {
            std::sort(entries.begin(), entries.end());
            return;
        }
        scatter();
        for (size_t bucket = 0, start = 0; bucket < ends_.size(); start = ends_[bucket++]) {
            if (ends_[bucket] - start >= FEW) {
                std::sort(entries.begin() + start, entries.begin() + ends_[bucket]);
            }
        }
        sort_neighbours();
    }

  private:
    static constexpr size_t FEW = 16;

    // Leaves the entries bucket by bucket, and in `ends_` where each bucket ends.
    void scatter() {
        const auto [least, largest] = std::minmax_element(
            entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.column < b.column; });
        const int64_t lowest = least->column;
        const double range = static_cast<double>(largest->column - lowest) + 1;
        const double scale = static_cast<double>(entries.size()) / range;
        const auto bucket_of = [&](const Entry &entry) {
            return static_cast<size_t>(static_cast<double>(entry.column - lowest) * scale);
        };
        ends_.assign(entries.size() + 2, 0);  // rounding may need one bucket more
        for (const Entry &entry : entries) ++ends_[bucket_of(entry) + 1];
        for (size_t bucket = 1; bucket < ends_.size(); ++bucket) ends_[bucket] += ends_[bucket - 1];
        scattered_.resize(entries.size());
        for (const Entry &entry : entries) scattered_[ends_[bucket_of(entry)]++] = entry;
        entries.swap(scattered_);
    }

    // By insertion: no entry is far from its place.
    void sort_neighbours() {
        for (size_t i = 1; i < entries.size(); ++i) {
            const Entry entry = entries[i];
            size_t at = i;
            for (; at > 0 && entry < entries[at - 1]; --at) entries[at] = entries[at - 1];
            entries[at] = entry;
        }
    }

    std::vector<size_t> ends_;
    std::vector<Entry> scattered_;
};

}  // namespace sparsemargin

// Sorting the entries of a row by column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sparsemargin {

struct Entry {
    int64_t column;
    const char *start;  // position in the text: defines the order of duplicates
    double value;

    bool operator<(const Entry &other) const {
        return column != other.column ? column < other.column : start < other.start;
    }
};

// The entries of one row, initially in any order.
class GatheredRow {
  public:
    std::vector<Entry> entries;

    // Sorts with as many buckets as entries. Hashed columns are evenly distributed, and other
    // columns often nearly so, so that few entries are left to sort in each bucket.
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

    // Arranges the entries by bucket, and stores the end of each bucket in `ends_`.
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
        ends_.assign(entries.size() + 2, 0);  // rounding may require one more bucket
        for (const Entry &entry : entries) ++ends_[bucket_of(entry) + 1];
        for (size_t bucket = 1; bucket < ends_.size(); ++bucket) ends_[bucket] += ends_[bucket - 1];
        scattered_.resize(entries.size());
        for (const Entry &entry : entries) scattered_[ends_[bucket_of(entry)]++] = entry;
        entries.swap(scattered_);
    }

    // Insertion sort: no entry is far from its final position.
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

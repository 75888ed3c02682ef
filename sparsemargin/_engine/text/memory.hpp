// Arrays that grow in place. On virtual machines, new pages cost more time than writing to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "../numerics/words.hpp"

namespace sparsemargin::text {

// Number of bytes after a text that may be read and written. Their values have no effect.
constexpr size_t PADDING = 32;

// Requests huge pages from the operating system, if it supports them.
inline void advise(void *start, size_t bytes) {
#ifdef __linux__
    constexpr uintptr_t PAGE = uintptr_t(1) << 21;
    const uintptr_t first = (reinterpret_cast<uintptr_t>(start) + PAGE - 1) & ~(PAGE - 1);
    const uintptr_t last = (reinterpret_cast<uintptr_t>(start) + bytes) & ~(PAGE - 1);
    if (first < last) madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

// Array of trivially copyable values. Values beyond `size` are not initialised.
template <class T>
class Array {
  public:
    Array() = default;
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { std::free(data_); }

    T *data() { return data_; }
    const T *data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T &operator[](size_t i) { return data_[i]; }
    const T &operator[](size_t i) const { return data_[i]; }
    void clear() { size_ = 0; }

    void reserve(size_t room) {
        if (room > room_) grow(std::max<size_t>({room, room_ + room_ / 2, 64}));
    }

    // Appends `by` uninitialised values.
    T *extend(size_t by) {
        reserve(size_ + by);
        size_ += by;
        return data_ + size_ - by;
    }

    void push_back(T value) { *extend(1) = value; }

    // Grows to `size` values, with 0 for the new ones. The first call uses calloc, so that pages
    // without writes cost no memory.
    void grow_by_zeros(size_t size) {
        const size_t more = size - size_;
        if (data_) {
            std::fill_n(extend(more), more, T());
        } else {
            data_ = static_cast<T *>(std::calloc(more, sizeof(T)));
            if (!data_) throw std::bad_alloc();
            size_ = room_ = size;
        }
    }

    // Returns the memory, which the caller must free. It is never null.
    T *release() {
        reserve(1);
        T *kept = data_;
        data_ = nullptr;
        size_ = room_ = 0;
        return kept;
    }

  private:
    [[gnu::noinline]] void grow(size_t room) {
        if (room > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
        T *grown = static_cast<T *>(std::realloc(data_, room * sizeof(T)));
        if (!grown) throw std::bad_alloc();
        advise(grown, room * sizeof(T));
        data_ = grown;
        room_ = room;
    }

    T *data_ = nullptr;
    size_t size_ = 0;
    size_t room_ = 0;
};

}  // namespace sparsemargin::text

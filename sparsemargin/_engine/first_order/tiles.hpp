// How weights are held sparsely.
#pragma once

#include <cstdint>

namespace sparsemargin {

// Labels side by side in a tile; of floats, a cache line.
constexpr int64_t TILE = 16;

}  // namespace sparsemargin

"""Powers, exact sums, random permutations, loops over contiguous numbers."""

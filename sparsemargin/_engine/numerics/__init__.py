"""Powers, sums, averages and vector loops, whatever the numbers stand for."""

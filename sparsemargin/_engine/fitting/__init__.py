"""Training: tasks, epochs, stopping rules, threads and certificates."""

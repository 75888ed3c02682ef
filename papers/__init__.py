"""The tables and figures of five papers, run again and set beside what is printed."""

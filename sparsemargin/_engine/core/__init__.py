"""What all first-order learners share: rules, a label's numbers, the log of corrections."""

"""What a learner keeps after training: its state, outputs and probabilities."""

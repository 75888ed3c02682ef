"""What a fit is: its task, epochs, stopping, threads and certificate."""

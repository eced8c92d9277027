"""What is to be built: targets, what a change rebuilds, jobs and their cost. Pure, but for reading git."""

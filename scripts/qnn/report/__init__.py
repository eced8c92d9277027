"""What a run says to people and machines."""

"""Are the numbers right? Comparison, saturation, gates, golden files, the float reference."""

"""Known faults of the HTP compiler: one table, what of it a graph meets, and whether it still holds."""

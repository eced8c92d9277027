"""The rules, a file for each kind of cost."""

"""Tests of the rewrites, one file for each kind of them."""

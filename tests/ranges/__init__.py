"""Tests of the fp16 range check."""

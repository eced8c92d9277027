"""Checking a bundle on a real device, through adb and qnn-net-run."""

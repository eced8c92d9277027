"""QAIRT versions and how they are installed."""

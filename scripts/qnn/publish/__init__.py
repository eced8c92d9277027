"""Bundles made public: accepted, planned, sent, read back, and only then shown, on GitHub, the Hub or in a folder."""

"""What a user downloads: manifest, README, archive, and checking one again."""

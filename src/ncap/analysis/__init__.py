"""What recordings mean: gaits, statistics, pictures. Sees arrays only."""

"""Gaits and statistics from arrays, the look of figures, and drawings of circuits."""

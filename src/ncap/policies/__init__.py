"""Brains: what turns observations into actions. Knows nothing of bodies."""

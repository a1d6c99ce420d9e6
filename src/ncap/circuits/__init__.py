"""Neural circuits as tables, compiled and stepped for a whole population."""

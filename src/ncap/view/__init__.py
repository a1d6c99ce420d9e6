"""Seeing it think: a live page, replays to keep, and videos."""

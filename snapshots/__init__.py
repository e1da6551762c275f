"""Heaps as trees of immutable pages: what a snapshot writes and a restore reads."""

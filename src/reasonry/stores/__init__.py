"""Stores of runs and sessions, in memory or in a SQLite file."""

from .open import default_path, open_store

__all__ = ["default_path", "open_store"]

"""Implementations of `Model` (in `engine.ports`): providers, programs, scripts, recordings, and exact arithmetic."""

"""Implementations of the `Model` port: providers, programs, scripts, recordings, and exact arithmetic."""

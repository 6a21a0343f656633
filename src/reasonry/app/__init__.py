"""The composition root: run requests, rights, and the wiring of settings into a store and an engine."""

"""The composition root: requests for runs, rights, and the wiring of settings into a store and an engine."""

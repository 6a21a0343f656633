"""The composition root: what is asked of runs, who may ask for what, and settings wired into a store and an engine."""

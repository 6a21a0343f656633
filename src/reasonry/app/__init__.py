"""The composition root: prepare runs, check the rights of callers, and connect the parts of Reasonry."""

"""Tools and verifiers: a run's abilities besides asking a model."""

"""The pure kernel: effects, events, strategies, and the machine that advances a run."""

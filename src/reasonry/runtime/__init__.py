"""Making it happen: the engine, its journal, its budgets, and guided sessions."""

"""The pure building blocks of strategies: actions, answers, drafts, evidence, judges, plans, programs, tournaments."""

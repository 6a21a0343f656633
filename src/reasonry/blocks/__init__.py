"""What strategies are built of: actions, answers, drafts, evidence, judges, plans, programs, tournaments. Pure."""

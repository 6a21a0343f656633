"""Setting Reasonry up in agents: where each looks for its servers and skills, and edits of those files in place."""

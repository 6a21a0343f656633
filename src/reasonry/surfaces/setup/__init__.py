"""Setup of Reasonry in agents: the places of their servers and skills, and edits of those files."""

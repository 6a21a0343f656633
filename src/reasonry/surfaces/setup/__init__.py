"""Sets up Reasonry in agents: finds and edits the files in which agents keep their MCP servers and skills."""

"""Effects, events, strategies and the machine that advances them. Pure."""

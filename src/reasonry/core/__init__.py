"""What thinking is: effects, events, strategies, the machine. Pure."""

"""Who thinks: models behind one port."""

"""The page of a run or a session: its data, made from records alone, and the one HTML file that draws it."""

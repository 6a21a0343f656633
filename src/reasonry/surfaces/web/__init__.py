"""The page of a run or a session: its data, made from records alone, and the HTML file that draws it."""

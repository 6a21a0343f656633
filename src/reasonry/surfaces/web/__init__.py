"""The page of a run or a session: its data, built from records alone, and the HTML file that draws the data."""

"""The page of a run or a session: its data, and the HTML file that draws the data."""

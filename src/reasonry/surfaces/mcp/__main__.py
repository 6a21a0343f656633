"""`python -m reasonry.surfaces.mcp`: the server alone, set by the environment."""

from __future__ import annotations

import sys

from ...errors import ReasonryError
from .serve import main

if __name__ == "__main__":
    try:
        main()
    except ReasonryError as error:
        sys.exit(f"reasonry: {error.message}")

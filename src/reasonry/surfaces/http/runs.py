"""Runs: started, watched, steered."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["runs"])

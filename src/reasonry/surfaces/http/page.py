"""The page under `/`, and its files under `/assets/`."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(include_in_schema=False)

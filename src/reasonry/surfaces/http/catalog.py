"""What there is to choose from: strategies, models; and what was used."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api", tags=["catalog"])

"""MCP over streamable HTTP, under `/mcp`."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()

"""A small MCP tool server: the climate of some cities, and a conversion. Made-up averages, no network.

    python examples/weather_server.py               # over stdio, as MCP clients start it
    python examples/weather_server.py --port 8123   # over streamable HTTP, at http://127.0.0.1:8123/mcp

With Reasonry:

    reasonry solve "Do I need an umbrella in Bergen in October?" --strategy analysis \
        --option focused_answer_type=yes/no --mcp "python examples/weather_server.py"
"""

from __future__ import annotations

import argparse

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("weather")

MONTHS = ("January", "April", "July", "October")
CLIMATE = {
    "Bergen": ((3, 19), (10, 14), (18, 17), (11, 22)),
    "Cairo": ((19, 2), (28, 1), (35, 0), (29, 0)),
    "Lisbon": ((15, 10), (20, 9), (28, 1), (23, 8)),
    "Rome": ((12, 8), (19, 8), (31, 2), (23, 8)),
}
"""Of each city and month: warmest hour of the average day in °C, days with rain."""


@server.tool()
def climate(city: str, month: str) -> dict[str, str | int]:
    """Say how warm and how rainy a city is in January, April, July or October."""
    months = [name.casefold() for name in MONTHS]
    known = {name.casefold(): name for name in CLIMATE}
    if city.casefold() not in known:
        raise ToolError(f"there is nothing about {city!r}; the cities are: {', '.join(CLIMATE)}")
    if month.casefold() not in months:
        raise ToolError(f"there is nothing about {month!r}; the months are: {', '.join(MONTHS)}")
    name, at = known[city.casefold()], months.index(month.casefold())
    high_c, rain_days = CLIMATE[name][at]
    return {"city": name, "month": MONTHS[at], "high_c": high_c, "rain_days": rain_days}


@server.tool()
def fahrenheit(celsius: float) -> float:
    """Convert degrees Celsius to degrees Fahrenheit."""
    return round(celsius * 9 / 5 + 32, 1)


def main() -> None:
    """Serve over stdio, or over HTTP on a port."""
    parser = argparse.ArgumentParser(description="The climate of some cities, as an MCP tool server.")
    parser.add_argument("--port", type=int, help="serve over HTTP on this port; default: over stdio")
    port = parser.parse_args().port
    if port is None:
        server.run()
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    main()

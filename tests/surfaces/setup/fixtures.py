"""Files of agents as people have them: other servers, comments, odd indentation, Windows' line ends, nothing at all."""

CLAUDE = """{
  "numStartups": 214,
  "installMethod": "native",
  "tipsHistory": {"new-user-warmup": 3, "shift-enter": 200},
  "mcpServers": {
    "github": {"type": "http", "url": "https://a.b/mcp/", "headers": {"Authorization": "Bearer ghp_NOTHING"}},
    "context7": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@upstash/context7-mcp"],
      "env": {}
    }
  },
  "projects": {
    "/home/me/a": {"allowedTools": [], "mcpServers": {}, "history": [{"display": "fix \\"it\\" // now"}]}
  },
  "cachedGrowthBookFeatures": {"tengu_x": 1e3}
}"""

VSCODE = """{
\t// Servers of mine. /* and not */
\t"inputs": [
\t\t{"type": "promptString", "id": "key", "description": "API key", "password": true,},
\t],
\t"servers": {
\t\t"playwright": {
\t\t\t"command": "npx",
\t\t\t"args": ["@playwright/mcp@latest"], // pinned? no
\t\t}, /* the only one */
\t}
}
"""

CODEX = """model = "gpt-6-luna"
model_reasoning_effort = "high"  # slow but sure

[projects."/home/me/a"]
trust_level = "trusted"

[mcp_servers.docs]
command = "npx"
args = [
    "-y",
    "docs-mcp", # the fork
]
startup_timeout_sec = 30

[mcp_servers.docs.env]
DOCS_KEY = "sk-secret-of-mine-0123456789"

[tui]
notifications = true
"""

GOOSE = """GOOSE_PROVIDER: anthropic
GOOSE_MODEL: claude-sonnet-5
extensions:
  developer:
    bundled: true
    display_name: Developer
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  fetch:
    args:
    - mcp-server-fetch
    cmd: uvx
    description: ''
    enabled: true
    env_keys: []
    envs:
      TOKEN: abc
    name: fetch
    timeout: 300
    type: stdio
GOOSE_MODE: smart_approve
"""

CURSOR = '{"mcpServers":{"linear":{"url":"https://mcp.linear.app/sse"}}}'

OWN = {
    "claude": CLAUDE,
    "vscode": VSCODE,
    "codex": CODEX,
    "goose": GOOSE,
    "cursor": CURSOR,
}
"""By agent; the others have the form of one of these."""


def texts(agent: str, form: str) -> dict[str, str | None]:
    """Return the files to try an agent with, by what they are; None: there is none."""
    own = OWN.get(agent, {"toml": CODEX, "yaml": GOOSE}.get(form, CLAUDE))
    return {
        "its own": own,
        "Windows": own.replace("\n", "\r\n"),
        "with a mark": "\ufeff" + own,
        "without a last line end": own.rstrip("\n"),
        "empty": "",
        "blank": "\n\n",
        "missing": None,
        "nothing in it": {"toml": "# nothing\n", "yaml": "# nothing\n"}.get(form, "{}"),
    }

"""The agents that Reasonry can be set up in, and where each one looks: the one table that everything reads.

A place is a path with variables: `{home}`; `{config}`, where the system keeps the settings of programs; `{local}`,
where Windows keeps data that stays on the machine; `{xdg}`, `~/.config` on every system; and `$NAME`, a variable of the
environment, without which the place does not count. Of several places, in their order, one of a variable that is set or
of a folder that a `*` finds is taken, else the first whose file is there, else the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

NAME = "reasonry"
"""What an entry is called where no other name is given."""


class EntryShape(Struct, frozen=True):
    """How an agent writes down how a server is started.

    Args:
        args: None: the command and its arguments are one list.
        fixed: What else an entry has; `{name}` stands for its name.
    """

    command: str = "command"
    args: str | None = "args"
    env: str = "env"
    fixed: Mapping[str, Any] = {}


STANDARD = EntryShape()
TYPED = EntryShape(fixed={"type": "stdio"})


class Agent(Struct, frozen=True):
    """A program that starts MCP servers.

    Args:
        title: What people call it.
        places: Of the user's own file: by system (`Linux`, `Darwin`, `Windows`), `*` for the others.
        keys: Under which keys of that file the servers stand.
        signs: Paths that are there where the agent is.
        programs: Commands on PATH that are there where the agent is.
        project: The file of a project, if there is one; `project_shape` where its entries are others.
        skills: The user's folder of skills, if the agent reads any.
        project_skills: That of a project.
        native: What the agent itself has for adding a server; `{name}` and `{command}` are filled in.
        environment: What its servers get: `all` of the shell's, only a `few` variables, or, as a program that no shell
            starts, those of the `desktop`.
    """

    name: str
    title: str
    places: Mapping[str, tuple[str, ...]]
    keys: tuple[str, ...] = ("mcpServers",)
    format: str = "json"
    shape: EntryShape = STANDARD
    signs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    project_shape: EntryShape | None = None
    skills: tuple[str, ...] = ()
    project_skills: str = ".agents/skills"
    native: str = ""
    environment: str = "all"

    def entry_shape(self, *, for_project: bool) -> EntryShape:
        """Return how entries are written in the user's file, or in that of a project."""
        return self.project_shape or self.shape if for_project else self.shape


_SHARED_SKILLS = ("{home}/.agents/skills",)
_CODE_SERVERS = ("servers",)

AGENTS: tuple[Agent, ...] = (
    Agent(
        name="claude",
        title="Claude Code",
        places={"*": ("$CLAUDE_CONFIG_DIR/.claude.json", "{home}/.claude.json")},
        shape=TYPED,
        signs=("$CLAUDE_CONFIG_DIR", "{home}/.claude", "{home}/.claude.json"),
        programs=("claude",),
        project=(".mcp.json",),
        skills=("$CLAUDE_CONFIG_DIR/skills", "{home}/.claude/skills"),
        project_skills=".claude/skills",
        native="claude mcp add --scope user {name} -- {command}",
    ),
    Agent(
        name="claude-desktop",
        title="Claude Desktop",
        places={
            "*": ("{config}/Claude/claude_desktop_config.json",),
            "Windows": (
                # The packaged app reads a copy of its own of the folder for settings.
                "{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
                "{config}/Claude/claude_desktop_config.json",
            ),
        },
        signs=("{config}/Claude", "{local}/Packages/Claude_*"),
        environment="desktop",
    ),
    Agent(
        name="cursor",
        title="Cursor",
        places={"*": ("{home}/.cursor/mcp.json",)},
        signs=("{home}/.cursor",),
        programs=("cursor", "cursor-agent"),
        project=(".cursor/mcp.json",),
        skills=_SHARED_SKILLS,
    ),
    Agent(
        name="vscode",
        title="VS Code",
        places={"*": ("{config}/Code/User/mcp.json",)},
        keys=_CODE_SERVERS,
        shape=TYPED,
        signs=("{config}/Code/User",),
        programs=("code",),
        project=(".vscode/mcp.json",),
        skills=_SHARED_SKILLS,
        native="""code --add-mcp '{{"name":"{name}","command":"uvx","args":["reasonry","mcp"]}}'""",
    ),
    Agent(
        name="vscode-insiders",
        title="VS Code Insiders",
        places={"*": ("{config}/Code - Insiders/User/mcp.json",)},
        keys=_CODE_SERVERS,
        shape=TYPED,
        signs=("{config}/Code - Insiders/User",),
        programs=("code-insiders",),
        project=(".vscode/mcp.json",),
        skills=_SHARED_SKILLS,
        native="""code-insiders --add-mcp '{{"name":"{name}","command":"uvx","args":["reasonry","mcp"]}}'""",
    ),
    Agent(
        name="codex",
        title="Codex",
        places={"*": ("$CODEX_HOME/config.toml", "{home}/.codex/config.toml")},
        keys=("mcp_servers",),
        format="toml",
        signs=("$CODEX_HOME", "{home}/.codex"),
        programs=("codex",),
        project=(".codex/config.toml",),
        skills=_SHARED_SKILLS,
        environment="few",
        native="codex mcp add {name} -- {command}",
    ),
    Agent(
        name="gemini",
        title="Gemini CLI",
        places={"*": ("{home}/.gemini/settings.json",)},
        signs=("{home}/.gemini/settings.json",),
        programs=("gemini",),
        project=(".gemini/settings.json",),
        skills=_SHARED_SKILLS,
        native="gemini mcp add --scope user {name} {command}",
    ),
    Agent(
        name="copilot",
        title="GitHub Copilot CLI",
        places={"*": ("$COPILOT_HOME/mcp-config.json", "{home}/.copilot/mcp-config.json")},
        shape=EntryShape(fixed={"type": "local", "tools": ["*"]}),
        signs=("$COPILOT_HOME", "{home}/.copilot"),
        programs=("copilot",),
        project=(".mcp.json",),
        project_shape=TYPED,
        skills=("$COPILOT_HOME/skills", "{home}/.copilot/skills"),
    ),
    Agent(
        name="windsurf",
        title="Windsurf",
        places={"*": ("{home}/.codeium/windsurf/mcp_config.json",)},
        signs=("{home}/.codeium/windsurf",),
        programs=("windsurf",),
        skills=_SHARED_SKILLS,
    ),
    Agent(
        name="zed",
        title="Zed",
        places={
            "Linux": ("$FLATPAK_XDG_CONFIG_HOME/zed/settings.json", "{config}/zed/settings.json"),
            "Darwin": ("{home}/.config/zed/settings.json",),
            "Windows": ("{config}/Zed/settings.json",),
        },
        keys=("context_servers",),
        signs=("{config}/zed", "{config}/Zed", "{home}/.config/zed"),
        programs=("zed", "zeditor"),
        project=(".zed/settings.json",),
        skills=_SHARED_SKILLS,
    ),
    Agent(
        name="opencode",
        title="OpenCode",
        places={"*": ("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc")},
        keys=("mcp",),
        shape=EntryShape(args=None, env="environment", fixed={"type": "local", "enabled": True}),
        signs=("{xdg}/opencode",),
        programs=("opencode",),
        project=("opencode.json", "opencode.jsonc"),
        skills=_SHARED_SKILLS,
    ),
    Agent(
        name="amp",
        title="Amp",
        places={"*": ("{home}/.config/amp/settings.json", "{home}/.config/amp/settings.jsonc")},
        keys=("amp.mcpServers",),
        signs=("{home}/.config/amp",),
        programs=("amp",),
        project=(".amp/settings.json", ".amp/settings.jsonc"),
        skills=("{home}/.config/agents/skills",),
        native="amp mcp add {name} -- {command}",
    ),
    Agent(
        name="goose",
        title="Goose",
        places={
            "*": ("{xdg}/goose/config.yaml",),
            "Windows": ("{config}/Block/goose/config/config.yaml",),
        },
        keys=("extensions",),
        format="yaml",
        shape=EntryShape(
            command="cmd",
            env="envs",
            fixed={
                "name": "{name}",
                "description": "Reasoning strategies: think in steps, branch, revise",
                "type": "stdio",
                "enabled": True,
                "timeout": 300,
            },
        ),
        signs=("{xdg}/goose", "{config}/Block/goose"),
        programs=("goose",),
        skills=_SHARED_SKILLS,
    ),
    Agent(
        name="lmstudio",
        title="LM Studio",
        places={"*": ("{home}/.lmstudio/mcp.json",)},
        signs=("{home}/.lmstudio",),
        environment="desktop",
    ),
    Agent(
        name="kiro",
        title="Kiro",
        places={"*": ("{home}/.kiro/settings/mcp.json",)},
        signs=("{home}/.kiro",),
        programs=("kiro", "kiro-cli"),
        project=(".kiro/settings/mcp.json",),
        skills=("{home}/.kiro/skills",),
        project_skills=".kiro/skills",
    ),
)


def find_agent(name: str) -> Agent:
    """Return the agent of a name, or of what it is called.

    Raises:
        NotFoundError: There is none; `choices` has the names.
    """
    from ...errors import NotFoundError

    wanted = name.strip().casefold().replace(" ", "-").replace("_", "-")
    for agent in AGENTS:
        if wanted in (agent.name, agent.title.casefold().replace(" ", "-")):
            return agent
    names = [agent.name for agent in AGENTS]
    raise NotFoundError(f"no agent is called {name[:60]!r}; there are {', '.join(names)}", choices=names)

"""Everything that authors of strategies, models, tools, verifiers and stores need, in one place.

`reasonry` has what a user of strategies needs; this module has the rest. Names that both have are the same.
"""

from __future__ import annotations

from .app.wiring import App
from .core.answering import AnswerOptions, AnswerReply, FinalAnswer, settle_answer
from .core.bodies import (
    Answers,
    Body,
    Conclusion,
    EffectFailed,
    Move,
    Request,
    Thought,
    fail,
    go,
    replies,
    request,
    stay,
)
from .core.budget import Budget, Usage
from .core.effects import Ask, CallTool, Effect, RunStrategy, Verify
from .core.events import Answered, Failed, Finished, ToolReturned, Verified
from .core.loop import Loop, Prompt, ask, ask_all, strategy
from .core.strategy import Field, NoOptions, Stage, Strategy
from .core.toolcard import ToolCard
from .engine.follow import Observer
from .engine.ports import Model, OnText, Question, SamplingModel, Tool, Verifier
from .errors import ConflictError, ModelError, NotFoundError, ToolError
from .models.scripted import ScriptedModel
from .reading.fit import Unreadable
from .records import (
    Found,
    RunStore,
    SessionChange,
    SessionFilters,
    SessionRow,
    SessionStore,
    SessionView,
    Store,
    Sweep,
    ThoughtRow,
)
from .surfaces.python.streaming import (
    BudgetEvent,
    CallEvent,
    EndEvent,
    ScoreEvent,
    StreamEvent,
    ThoughtEvent,
    VerdictEvent,
)

__all__ = [
    "AnswerOptions",
    "AnswerReply",
    "Answered",
    "Answers",
    "App",
    "Ask",
    "Body",
    "Budget",
    "BudgetEvent",
    "CallEvent",
    "CallTool",
    "Conclusion",
    "ConflictError",
    "Effect",
    "EffectFailed",
    "EndEvent",
    "Failed",
    "Field",
    "FinalAnswer",
    "Finished",
    "Found",
    "Loop",
    "Model",
    "ModelError",
    "Move",
    "NoOptions",
    "NotFoundError",
    "Observer",
    "OnText",
    "Prompt",
    "Question",
    "Request",
    "RunStore",
    "RunStrategy",
    "SamplingModel",
    "ScoreEvent",
    "ScriptedModel",
    "SessionChange",
    "SessionFilters",
    "SessionRow",
    "SessionStore",
    "SessionView",
    "Stage",
    "Store",
    "Strategy",
    "StreamEvent",
    "Sweep",
    "Thought",
    "ThoughtEvent",
    "ThoughtRow",
    "Tool",
    "ToolCard",
    "ToolError",
    "ToolReturned",
    "Unreadable",
    "Usage",
    "VerdictEvent",
    "Verified",
    "Verifier",
    "Verify",
    "ask",
    "ask_all",
    "fail",
    "go",
    "replies",
    "request",
    "settle_answer",
    "stay",
    "strategy",
]

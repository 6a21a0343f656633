"""What the replies of whole conversations cost an agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from ...conversations import CONVERSATIONS, THOUGHT, Conversation, tokens
from .raw import Raw


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=[one.name for one in CONVERSATIONS])
def test_the_replies_of_a_conversation_keep_within_their_target(conversation: Conversation) -> None:
    with Raw(DISABLE_THOUGHT_LOGGING="true") as raw:
        answers = [
            raw.ask("tools/call", {"name": "sequentialthinking", "arguments": call})["result"]
            for call in conversation.calls
        ]
    texts: list[str] = [answer["content"][0]["text"] for answer in answers]
    replies = [json.loads(text) for text in texts]
    assert [reply["thoughtHistoryLength"] for reply in replies] == list(range(1, len(conversation.calls) + 1))
    (session,) = {reply["sessionId"] for reply in replies}
    assert len(session) == 36
    assert all(len(text) / 4 <= 39 for text in texts if len(json.loads(text)) == 6)
    assert tokens(texts) <= conversation.target
    assert not any(THOUGHT[:100] in text for text in texts)
    assert texts == [json.dumps(reply, separators=(",", ":"), ensure_ascii=False) for reply in replies]
    assert replies == [answer["structuredContent"] for answer in answers]


def test_the_tree_is_led_with_guidance_required_fields_and_scores() -> None:
    tree = CONVERSATIONS[1]
    with Raw(DISABLE_THOUGHT_LOGGING="true") as raw:
        replies: list[dict[str, Any]] = [raw.call("sequentialthinking", **call) for call in tree.calls]
    assert [reply["stage"] for reply in replies] == [call["stage"] for call in tree.calls]
    assert ["guidance" in reply for reply in replies] == [True] + [False] * 18
    told = [one["name"] for reply in replies for one in reply["nextStages"] if "guidance" in one]
    assert sorted(told) == sorted({call["stage"] for call in tree.calls[1:]})
    required = [one.get("requires") for reply in replies for one in reply["nextStages"]]
    assert required.count({"score": "number, 0 to 1"}) == 3
    assert replies[13]["scores"] == "A 0.70 → 0.90 · B 0.40"
    assert "leftOpen" not in replies[18], "B was passed over"


def test_a_connection_sees_the_history_of_an_earlier_session_once_and_nothing_of_its_own(
    tmp_path: Path,
) -> None:
    store = tmp_path / "thoughts.db"
    quiet = {"DISABLE_THOUGHT_LOGGING": "true"}
    with Raw(store, **quiet) as raw:
        session = raw.think(1, strategy="react")["sessionId"]
        assert "thoughtHistory" not in raw.think(2)
        assert "thoughtHistory" not in raw.think(3, sessionId=session)
    with Raw(store, **quiet) as raw:
        met = raw.think(4, sessionId=session)
        assert [one["thoughtNumber"] for one in met["thoughtHistory"]] == [1, 2, 3, 4]
        assert (met["strategy"], met["stage"], "guidance" in met) == ("react", "problem_reception", True)
        later = raw.think(5, sessionId=session)
        assert not {"thoughtHistory", "strategy", "guidance"} & set(later)
        assert len(raw.think(6, sessionId=session, history=2)["thoughtHistory"]) == 2
    with Raw(store, **quiet) as raw:
        resumed = raw.call("sessions", action="resume", sessionId=session, history=9)
        assert [one["thought_number"] for one in resumed["thought_history"]] == [1, 2, 3, 4, 5, 6]
        assert "thoughtHistory" not in raw.think(7)

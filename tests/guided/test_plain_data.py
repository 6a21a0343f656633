"""The data of thoughts as people read it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.guided.export import plain_value

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text("ab", min_size=1, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1, max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "yes"),
        (0.9, "0.9"),
        (1e-9, "1e-09"),
        (3, "3"),
        ("[text]", "[text]"),
        (["a", "b c", 3], "a; b c; 3"),
        ({"x": 1, "y": False}, "x: 1, y: no"),
        (
            [{"description": "a", "status": "Done"}, {"description": "b"}],
            "(description: a, status: Done); (description: b)",
        ),
        ({"#E1": ["a", "b"]}, "#E1: (a; b)"),
        ([], "none"),
        ({"x": []}, "x: none"),
    ],
)
def test_data_is_shown_without_brackets_and_quotes(value: Any, text: str) -> None:
    assert plain_value(value) == text


@given(JSON)
def test_no_data_is_shown_as_python(value: Any) -> None:
    assert not set("[]{}'") & set(plain_value(value))

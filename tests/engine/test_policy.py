"""A policy that cannot be kept is refused when it is made."""

from typing import Any

import pytest

from reasonry.engine.policy import Policy
from reasonry.errors import UsageError


@pytest.mark.parametrize(
    "name", ["max_concurrency", "max_attempts", "max_output_tokens", "call_timeout_s", "tool_timeout_s"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_number_that_is_not_above_zero_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} must be above 0"):
        Policy(**{name: value})


def test_policies_share_rate_limits_only_if_given_them() -> None:
    assert Policy().rates is not Policy().rates

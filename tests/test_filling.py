"""Made-up replies fit the form they are made up for."""

import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reasonry.strategies import STRATEGIES

from .filling import fill

FORMS = {
    f"{name}.{stage.name}": stage.form
    for name, strategy in STRATEGIES.items()
    for stage in strategy.stages
    if stage.form is not None
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_reply_fits_the_form_of_every_stage(form: dict[str, Any]) -> None:
    validator = Draft202012Validator(form)
    for seed in range(20):
        for whole in (True, False):
            validator.validate(fill(form, random.Random(seed), whole=whole))

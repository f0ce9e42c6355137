"""The kernel's own behavioural tests and validator, run on this module."""

from pathlib import Path

import pytest
from amplifier_core.validation import ContextValidator
from amplifier_core.validation.behavioral import ContextBehaviorTests

PACKAGE = Path(__file__).parent.parent / "amplifier_module_context_palimpsest"


class TestPalimpsestContextBehavior(ContextBehaviorTests):
    pass


@pytest.mark.asyncio
@pytest.mark.parametrize("contract", ["2.1", "1.0"])
async def test_the_validator_passes_each_check(contract):
    result = await ContextValidator().validate("amplifier_module_context_palimpsest", config={"contract": contract})
    assert [check.message for check in result.checks if not check.passed] == []
    assert result.passed
    by_path = await ContextValidator().validate(PACKAGE, config={"contract": contract})
    assert [check.message for check in by_path.checks if not check.passed] == []

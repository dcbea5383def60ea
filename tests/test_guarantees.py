"""What is left of several promises."""

from __future__ import annotations

from penstock.query.guarantees import Guarantee, weakest


def test_the_weakest_promise_is_left_with_its_own_reason() -> None:
    strong = Guarantee("exactly-once", "the sink keeps a ledger")
    middle = Guarantee("at-least-once", "the trigger is continuous")
    nothing = Guarantee("none", "the console is for looking")
    assert weakest([strong, middle, nothing]) is nothing
    assert weakest([strong, middle]) is middle


def test_the_first_of_equal_promises_gives_the_reason() -> None:
    first, second = Guarantee("at-least-once", "first"), Guarantee("at-least-once", "second")
    assert weakest([first, second]) is first

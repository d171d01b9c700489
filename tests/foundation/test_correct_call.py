"""Errors for wrong arguments show a correct call."""

import inspect

import pytest

from sfumato.foundation.correct_call import shows_call


@shows_call("share(1, of=4)")
def share(part: int, *, of: int) -> float:
    """Return a share."""
    return part / of


class Share:
    """A share."""

    @shows_call("Share(1, 4)")
    def __init__(self, part, whole):
        self.value = share(part, of=whole)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: share(1, 4),
            r"share\(\) takes 1 positional argument .*\. Call share\(1, of=4\)\.",
        ),
        (lambda: share(1), r"missing .* argument: 'of'\. Call share\(1, of=4\)\.$"),
        (lambda: share(1, of=4, by=2), r"unexpected keyword argument 'by'\. Call share\(1, of=4\)"),
        (lambda: Share(1), r"^Share\(\) missing .*: 'whole'\. Call Share\(1, 4\)\.$"),
    ],
)
def test_wrong_arguments_show_the_call(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_other_errors_are_unchanged():
    with pytest.raises(TypeError, match=r"unsupported operand") as caught:
        share("1", of=4)
    assert "Call" not in str(caught.value)
    with pytest.raises(ZeroDivisionError):
        share(1, of=0)


def test_wrong_calls_inside_the_function_are_unchanged():
    @shows_call("outer()")
    def outer():
        return inner(1)

    def inner():
        return 1

    with pytest.raises(TypeError, match=r"inner\(\) takes 0 positional arguments") as caught:
        outer()
    assert "outer()" not in str(caught.value)


def test_right_calls_and_the_signature_are_unchanged():
    assert share(1, of=4) == Share(1, 4).value == 0.25
    assert str(inspect.signature(share)) == "(part: int, *, of: int) -> float"
    assert share.__doc__ == "Return a share."

"""What notebooks show of a mechanism."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["mechanism_html"]

_LEFT = 'style="text-align:left"'


def mechanism_html(mechanism: "Mechanism") -> str:
    """Return a table of the facts that a survey's designer weighs."""
    leverage = f"one fake report outweighs up to {mechanism.scores.leverage:,.3g} honest people"
    facts = {
        "context": repr(mechanism.context),
        "reports": f"{mechanism.outputs:,} different ones, {mechanism.bits} bits each",
        "leverage": leverage,
        "fingerprint": mechanism.fingerprint,
    }
    rows = ""
    for name, fact in facts.items():
        rows += f'<tr><th scope="row" {_LEFT}>{name}</th><td {_LEFT}>{escape(fact)}</td></tr>'
    title = escape(type(mechanism).__name__)
    return f"<p><b>{title}</b></p><table><tbody>{rows}</tbody></table>"

"""The try page: pick an answer, see what would be sent and what anybody could make of it, then send it.

The page is a frame with words; ``try/try.js`` fills it in the browser with the JavaScript client, so that what is shown
is what the device does. It loads nothing from elsewhere, and its answers leave the device only as reports.
"""

import json
from html import escape

from sfumato.domains import Domain, GridDomain
from sfumato.pages.promise import promise_sentences
from sfumato.survey import Survey

__all__ = ["TRY_POLICY", "try_page"]

TRY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The page may load its own scripts and talk to its own aggregator, and nothing else."""

_FEW, _TYPED = 12, 2000


def try_page(survey: Survey) -> str:
    """The page of one survey; its scripts and styles are under ``../static/``."""
    text = f'<p class="lead" dir="auto">{escape(survey.text)}</p>' if survey.text else ""
    columns = survey.context.domain.shape[1] if isinstance(survey.context.domain, GridDomain) else 0
    promised = "".join(
        f"<li>{escape(sentence)}</li>" for sentence in promise_sentences(survey.context)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Try: {escape(survey.title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="../static/report.css">
<link rel="stylesheet" href="../static/try/try.css">
<script type="module" src="../static/try/try.js"></script>
</head>
<body>
<header>
<p class="kicker">Try it · nothing leaves this page until you press “Send”</p>
<h1 dir="auto">{escape(survey.title)}</h1>
{text}
</header>
<main data-survey="{survey.fingerprint}" data-columns="{columns}">
<p id="problem" class="caution" role="alert" hidden></p>
<noscript><p class="caution">Your answer is blurred by a script in this page, so that it never leaves your device as it
is. Without scripts there is nothing to try.</p></noscript>
<section aria-labelledby="choose-title">
<h2 id="choose-title">1. Pick an answer</h2>
{_choice(survey.context.domain)}
</section>
<section id="seen" aria-labelledby="seen-title" hidden>
<h2 id="seen-title">2. What would leave your device</h2>
<p>Your answer, <b id="answer"></b>, stays here. Your device rolls a weighted die and sends what it
shows:</p>
<p class="big" aria-live="polite">report <span id="report"></span></p>
<p class="note">One of <span id="outputs"></span> possible reports.</p>
<div class="buttons"><button id="again">Roll again</button><button id="many">Roll 1,000 times</button></div>
<h3>What anybody could conclude</h3>
<p id="compare" class="compare"><label for="other">Somebody wavers between your answer and</label>
<select id="other"></select></p>
<p id="conclusion" aria-live="polite"></p>
<ul class="keys" aria-label="Key">
<li class="own-key">how likely with your answer, <span id="own-name"></span></li>
<li class="other-key">how likely with <span id="other-name"></span></li>
<li class="draws-key" id="drawn-key" hidden>what <span id="drawn-count"></span> rolls gave</li>
</ul>
<div class="scroll" tabindex="0" role="region" aria-label="How likely each report is">
<table id="bars" class="bars"><tbody></tbody></table></div>
<p id="together" class="note" hidden>There are too many reports to draw each; they are put together by what they say
between these two answers. The one above is among those that are marked.</p>
</section>
<section id="send" aria-labelledby="send-title" hidden>
<h2 id="send-title">3. Send it, if you like</h2>
<p>One roll counts. Your browser keeps a secret and derives the roll from it, so that asking you again teaches nobody
anything new: the first answer that is sent stands.</p>
<p id="open" class="caution" hidden></p>
<div class="buttons"><button id="post" class="main">Send one report</button></div>
<p id="receipt" role="status"></p>
<p id="spent" class="note" hidden></p>
<div id="sent" hidden><p class="note">What leaves your device, to the last letter:</p><pre id="body"></pre></div>
</section>
<section aria-labelledby="promise-title">
<h2 id="promise-title">What is promised</h2>
<ul class="promise">{promised}</ul>
<p><a href="../label/{survey.fingerprint}">The privacy label of this survey</a>: all of it on one page.</p>
<p class="note">Survey <code>{survey.fingerprint}</code>. Your browser has checked that the fingerprint is that of what
it loaded. A page of your own would have it written in its source.</p>
</section>
</main>
</body>
</html>
"""  # noqa: S608 - words, not a query


def _choice(domain: Domain) -> str:
    """The form to pick an answer with: a list, a box with suggestions, or a map."""
    if isinstance(domain, GridDomain):
        return _map(domain)
    if domain.size <= _FEW:
        options = "".join(
            f'<label class="option"><input type="radio" name="answer" value="{x}">'
            f'<span dir="auto">{escape(str(label))}</span></label>'
            for x, label in enumerate(domain.labels)
        )
        listed = f"<fieldset><legend>Your answer</legend>{options}</fieldset>"
        return f'<form id="choice" data-kind="list" autocomplete="off" hidden>{listed}</form>'
    shown = [str(domain.labels[x]) for x in range(min(domain.size, _TYPED))]
    suggestions = "".join(f'<option value="{escape(label)}"></option>' for label in shown)
    return f"""<form id="choice" data-kind="box" autocomplete="off" hidden>
<p class="box"><label for="typed">Your answer, one of {domain.size:,}</label>
<input id="typed" list="suggested" placeholder="{escape(shown[0])}"></p>
<datalist id="suggested">{suggestions}</datalist></form>"""


def _map(grid: GridDomain) -> str:
    record = grid.record()
    edges = {name: float(record[name]) for name in ("south", "north", "west", "east", "step")}
    ratio = (edges["north"] - edges["south"]) / (edges["east"] - edges["west"])
    inputs = "".join(
        f'<label>{name.capitalize()}<input name="{name}" type="number" step="any" min="{low}" max="{high}"></label>'
        for name, low, high in (
            ("latitude", record["south"], record["north"]),
            ("longitude", record["west"], record["east"]),
        )
    )
    return f"""<form id="choice" data-kind="map" data-edges="{escape(json.dumps(edges))}" autocomplete="off" hidden>
<p>Click where you are, or type it. The page rounds to a cell of {record["step"]}°.</p>
<canvas width="800" height="{round(800 * max(0.25, min(1.2, ratio)))}" role="img"
aria-label="A map to click on; or type the position below"></canvas>
<p class="places">{inputs}</p></form>"""

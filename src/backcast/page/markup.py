"""Pieces of a page. Whatever is not `Html` already is text from elsewhere, and is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as _escaped
from typing import Literal

from backcast.page.style import CSS

Tone = Literal["plain", "good", "bad", "careful", "quiet", "info"]
"""What a colour says; the words beside it say it too."""


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


Content = Html | str | int | float | None
"""What goes into a page: markup, or a value that is shown as text. None is shown as nothing."""


def escape(value: Content) -> Html:
    """The value as markup. Whole numbers get thousands separators; characters that cannot be shown are replaced."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html()
    if isinstance(value, int) and not isinstance(value, bool):
        return Html(f"{value:,}")
    shown = "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in str(value)
    )
    return Html(_escaped(shown, quote=True))


def join(*parts: Content, by: str = "") -> Html:
    return Html(escape(by).join(escape(part) for part in parts if part is not None))


def tag(name: str, *inside: Content, **attributes: str) -> Html:
    """An element; `class_` and `data_x` are spelled as Python allows."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value, quote=True)}"'
        for key, value in attributes.items()
        if value
    )
    return Html(f"<{name}{given}>{join(*inside)}</{name}>")


def page(title: str, *body: Content, subtitle: Content = None, foot: Content = None) -> str:
    """A whole document, which needs nothing else: no script, no font, no picture from anywhere."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    under = tag("p", subtitle, class_="subtitle") if subtitle is not None else None
    end = tag("footer", foot) if foot is not None else None
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"{tag('header', tag('h1', title), under)}\n{join(*body, by=Html(chr(10)))}\n{join(end)}\n"
        "</main>\n</body>\n</html>\n"
    )


def section(heading: str, *body: Content, note: Content = None) -> Html:
    """A part with a heading, and a quiet sentence that says how to read it."""
    said = tag("p", note, class_="note") if note is not None else None
    return tag("section", tag("h2", heading), said, *body)


def paragraph(*parts: Content, tone: Tone = "plain") -> Html:
    return tag("p", *parts, class_=_tone(tone))


def code(text: str) -> Html:
    return tag("code", text)


def badge(text: str, tone: Tone = "plain") -> Html:
    return tag("span", text, class_=f"badge {_tone(tone)}")


def toned(value: Content, tone: Tone) -> Html:
    return tag("span", value, class_=_tone(tone))


def facts(pairs: Iterable[tuple[str, Content]]) -> Html:
    """Name and value, one under the other; those without a value are left out."""
    return tag(
        "dl",
        *(join(tag("dt", name), tag("dd", value)) for name, value in pairs if value is not None and value != ""),
        class_="facts",
    )


def tiles(pairs: Iterable[tuple[str, Content, Tone]]) -> Html:
    """The few numbers that matter, large: what it is, how much, and whether that is good."""
    made = (
        tag("div", tag("div", value, class_=f"number {_tone(tone)}"), tag("div", name, class_="name"), class_="tile")
        for name, value, tone in pairs
    )
    return tag("div", *made, class_="tiles")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Content]], *, right: Iterable[int] = (), caption: Content = None
) -> Html:
    """Columns with numbers are aligned right; so are those whose position is in `right`."""
    listed = [tuple(row) for row in rows]
    numbers = set(right) | {
        column
        for column in range(len(head))
        if listed and all(isinstance(row[column], int | float) or row[column] is None for row in listed)
    }

    def cells(name: str, row: Sequence[Content]) -> Html:
        return tag("tr", *(tag(name, each, class_="n" if at in numbers else "") for at, each in enumerate(row)))

    made = tag(
        "table",
        tag("caption", caption) if caption is not None else None,
        tag("thead", cells("th", head)),
        tag("tbody", *(cells("td", row) for row in listed)),
    )
    return tag("div", made, class_="wide")


def details(summary: Content, *body: Content, opened: bool = False) -> Html:
    """Shown on a click; always shown when printed."""
    mark = " open" if opened else ""
    return Html(f"<details{mark}>{tag('summary', summary)}{join(*body)}</details>")


def _tone(tone: Tone) -> str:
    return "" if tone == "plain" else f"tone-{tone}"

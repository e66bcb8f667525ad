"""Elements of HTML, SVG and XML that can hold nothing but plain text."""

from __future__ import annotations

from xml.etree.ElementTree import Element

HIDDEN = "\N{REPLACEMENT CHARACTER}"


def plain(text: str) -> str:
    """The text without what no reader shows, or what steers one: control characters, marks that
    reverse the direction, half surrogates. Legal in XML 1.0 and encodable as UTF-8."""
    shown = text.replace("\r\n", "\n").replace("\t", " ")
    return "".join(c if c.isprintable() or c == "\n" else HIDDEN for c in shown)


def node(tag: str, *content: str | Element, **attributes: str) -> Element:
    """An element with its content in order; `class_` is `class`, `aria_label` is `aria-label`.

    All text comes through here, so that what is serialised from it is plain and escaped.
    """
    names = {name.rstrip("_").replace("_", "-"): plain(v) for name, v in attributes.items()}
    element = Element(tag, names)
    for piece in content:
        if isinstance(piece, Element):
            element.append(piece)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + plain(piece)
        else:
            element.text = (element.text or "") + plain(piece)
    return element

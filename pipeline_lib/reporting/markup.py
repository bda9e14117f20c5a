"""HTML and SVG as element trees, so that text is escaped wherever it comes from."""

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Child = Element | str
"""What stands inside an element."""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def element(
    name: str, attributes: Mapping[str, object] | None = None, children: Iterable[Child] = ()
) -> Element:
    """Return an element of HTML or SVG.

    Args:
        name: Its tag.
        attributes: Their values are written as text; numbers with at most two decimals.
        children: Elements and texts, in order.
    """
    texts = {key: _text(value) for key, value in (attributes or {}).items()}
    parent = Element(name, texts)
    for child in children:
        if isinstance(child, Element):
            parent.append(child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child
    return parent


def block(class_: str, *children: Child) -> Element:
    """Return a ``div`` of one class."""
    return element("div", {"class": class_}, children)


def span(class_: str, *children: Child) -> Element:
    """Return a ``span`` of one class."""
    return element("span", {"class": class_}, children)


def paragraph(*children: Child) -> Element:
    """Return a paragraph."""
    return element("p", {}, children)


def code(name: str) -> Element:
    """Return a name as it stands in params.yaml."""
    return element("code", {}, [name])


def document(language: str, title: str, style: str, body: Iterable[Child]) -> str:
    """Return a whole HTML page; its style stands in it, and it forbids itself to load anything."""
    head = [
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("link", {"rel": "icon", "href": "data:,"}),  # else browsers ask for favicon.ico
        element("title", {}, [title]),
        element("style", {}, [style]),
    ]
    page = element(
        "html", {"lang": language}, [element("head", {}, head), element("body", {}, body)]
    )
    return "<!doctype html>\n" + html(page) + "\n"


def html(tree: Element) -> str:
    """Return an element as HTML text."""
    return ElementTree.tostring(tree, encoding="unicode", method="html")


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

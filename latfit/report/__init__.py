"""Results for people: the same sections as plain text, as Markdown, as a page, or in a notebook.

Names are imported when they are first used: most commands need no page.
"""

from importlib import import_module
from typing import Any

_HOME = {"to_html": "page", "to_html_fragment": "page", "to_markdown": "sections", "to_text": "sections"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

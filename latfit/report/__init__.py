"""Results for people: the same sections as plain text, as Markdown, as a page, or in a notebook."""

from latfit.report.layout import Section, sections, text_table, to_markdown, to_text
from latfit.report.notebook import sample_fragment, to_html_fragment
from latfit.report.page import to_html

__all__ = [
    "Section",
    "sample_fragment",
    "sections",
    "text_table",
    "to_html",
    "to_html_fragment",
    "to_markdown",
    "to_text",
]

"""Results for people: the same sections as plain text, as Markdown, as a page, or in a notebook."""

from latfit.report.layout import Section, text_table
from latfit.report.page import sample_fragment, to_html, to_html_fragment
from latfit.report.sections import sections, to_markdown, to_text

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

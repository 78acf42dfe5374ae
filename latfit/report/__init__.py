"""Results for people: the same sections as plain text, as Markdown, or in a notebook."""

from latfit.report.layout import Section, sections, to_html_fragment, to_markdown, to_text

__all__ = ["Section", "sections", "to_html_fragment", "to_markdown", "to_text"]

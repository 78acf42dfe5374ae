"""Hostile texts in a log stay text in its report page."""

import base64
import hashlib
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import latfit
from fuzzing.mutate import TEXTS
from latfit.report import to_html, to_markdown, to_text

HOSTILE = (
    '<script>alert(1)</script>', '</script><script>alert(1)</script>', '<img src=x onerror=alert(1)>',
    '"><svg onload=x>', "'onmouseover='x", '</style><style>*{}', '<!--', '-->', ']]>', '&lt;b&gt;',
    '&#60;script&#62;', 'javascript:alert(1)', '<a href=//evil>', '<base href=//evil>',
    '<meta http-equiv=refresh content=0>', '<iframe srcdoc=x>', '{{7*7}}', '${x}', '</title><h1>',
    '\u2028\u2029', '<\x00script>', '％3Cscript', '<math><mi//xlink:href=x>', 'a\nb', '`x`', '</main>',
    '=HYPERLINK(1)', '\x1b[2J', '\u202egnp', '</td></tr></table>', '\\u003cscript\\u003e',
    '<form action=//evil>',
)  # fmt: skip
ATTRIBUTES = {"src", "href", "style", "srcdoc", "action", "formaction", "xlink:href", "ping", "background"}
FORBIDDEN = {"img", "iframe", "link", "object", "embed", "form", "base", "a", "math", "foreignobject", "use", "image"}


class _Tags(HTMLParser):
    """The tags of a page, and the texts of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.comments = 0
        self.raw: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_comment(self, data: str) -> None:
        self.comments += 1


def content(rng: random.Random) -> bytes:
    """JSON lines in which names, values and words are hostile."""
    texts = (*HOSTILE, *(text for text in TEXTS if not re.search("[\ud800-\udfff]", text)))
    column, many = rng.choice(texts) + rng.choice(("", rng.choice(texts))), rng.choice((1, 2, 4))
    values = [rng.choice(texts) + rng.choice(("", "x")) for _ in range(many)]
    failed, lines = rng.choice(texts), []
    for k in range(rng.choice((6, 30, 60))):
        record = {"latency": round(rng.lognormvariate(1, 1), 2), "status": "completed", column: rng.choice(values),
                  "submitted": 1.7e9 + 10 * k}  # fmt: skip
        if k % 9 == 4:
            record["status"] = failed
        lines.append(json.dumps(record))
    return ("\n".join(lines) + "\n").encode()


def wrong(data: bytes, folder: Path, seed: int) -> list[str]:
    """What is wrong with the page, the Markdown and the text of such a log."""
    rng = random.Random(seed)
    name = re.sub(r"[/\0]", "", rng.choice(HOSTILE))[:60].encode("utf-8", "surrogatepass").decode(errors="replace")
    path = folder / (name if name.strip(".") else "log")
    path.write_bytes(data)
    try:
        log = latfit.read_log(path, format="jsonl", max_refused=1)
        by = [column for column in log.frame if column not in ("latency", "status", "submitted", "line", "id")][:1]
        result = latfit.analyze(log, laws=["exponential"], test=False, resamples=0, by=by if rng.random() < 0.7 else ())
    except latfit.LatfitError:
        return []
    finally:
        path.unlink()
    return [*wrong_page(to_html(result)), *_wrong_text(to_text(result)), *_wrong_text(to_markdown(result))]


def wrong_page(page: str) -> list[str]:
    """A page has its own tags only, one script and one style that its policy names, and data that are JSON.

    Links lead to its own parts (`#schedule`) and nowhere else.
    """
    found = _Tags()
    found.feed(page)
    own_parts = {f"#{attributes.get('id')}" for _, attributes in found.tags}
    found.tags = [
        tag for tag in found.tags if tag[0] != "a" or tag[1].keys() != {"href"} or tag[1]["href"] not in own_parts
    ]
    told = [f"<{tag}>" for tag, _ in found.tags if tag in FORBIDDEN]
    told += [
        f"{tag} {key}" for tag, attributes in found.tags for key in attributes if key in ATTRIBUTES or key[:2] == "on"
    ]
    told += ["a comment"] * bool(found.comments)
    kinds = [tag for tag, _ in found.tags]
    if (kinds.count("script"), kinds.count("style"), kinds.count("title"), kinds.count("main")) != (2, 1, 1, 1):
        told.append(f"{kinds.count('script')} scripts, {kinds.count('style')} styles, {kinds.count('title')} titles")
    policies = [a.get("content") or "" for tag, a in found.tags if tag == "meta" and a.get("http-equiv")]
    policy = policies[0] if len(policies) == 1 else ""
    if not policy.startswith("default-src 'none'; "):
        told.append(f"policies: {policies}")
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside]
        if len(hashes) != 1 or f"{tag}-src 'sha256-{hashes[0]}'" not in policy:
            told.append(f"a {tag} that the policy does not name")
    block = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    if len(block) != 1 or set("<>&\u2028\u2029") & set(block[0]) or not isinstance(json.loads(block[0]), dict):
        told.append(f"data: {block}"[:300])
    if len(page.encode()) > 150_000:
        told.append(f"{len(page.encode())} bytes")
    return told + _wrong_text(re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL))


def _wrong_text(text: str) -> list[str]:
    odd = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    return [f"unprintable: {odd[:5]}"] if odd else []

"""Dated posts: one Markdown file a language in posts/, named YYYY-MM-DD-name.md, listed newest first."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from markupsafe import Markup

from roofbook.errors import PageError
from roofbook.pages.library import Library
from roofbook.pages.press import Press
from roofbook.pages.prose import Head, Written, below_front_matter, read_head
from roofbook.pages.quotes import PageQuotes

FOLDER: Final = "posts"
_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")


@dataclass(frozen=True)
class Post:
    """A post as a list shows it in one language; *lang* is the one it is read in, for it may exist in another only."""

    title: str
    day: date
    summary: Markup
    uri: str
    lang: str


def languages_of(site_src: Path, languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the languages of every post, by its address.

    Raises PageError for a file in a posts folder whose name is no date with a name.
    """
    found: dict[str, list[str]] = {}
    for lang in languages:
        for path in sorted((site_src / lang / FOLDER).glob("*.md")):
            if not _NAME.fullmatch(path.name):
                raise PageError(
                    "%(path)s: a post is named by its date and some small letters, as in 2026-09-02-first-fit.md",
                    path=path,
                )
            found.setdefault(f"{FOLDER}/{path.name}", []).append(lang)
    return {uri: tuple(langs) for uri, langs in sorted(found.items(), reverse=True)}


def written_posts(press: Press, lang: str, posts: Mapping[str, tuple[str, ...]], library: Library) -> list[Written]:
    """Return the finished posts of *lang*, newest first."""
    return [
        _written(press, lang, uri, langs, PageQuotes(library, uri)) for uri, langs in posts.items() if lang in langs
    ]


def _written(press: Press, lang: str, uri: str, langs: tuple[str, ...], quotes: PageQuotes) -> Written:
    template = f"{lang}/{uri}"
    written = press.prose(uri, template, quotes)
    head = replace(checked(written.head, uri, template), shelf=FOLDER)
    opening = press.part(uri, "parts/post.md.j2", {"post": head})
    page = replace(written.page, markdown=below_front_matter(written.page.markdown, opening), langs=langs)
    return Written(page, head, written.drawn)


def listed(posts: Mapping[str, tuple[str, ...]], site_src: Path, lang: str, own: Sequence[Written]) -> list[Post]:
    """Return every post as *lang* lists it: its *own*, and those that exist in other languages only."""
    by_uri = {written.page.uri: written.head for written in own}
    return [
        _own(by_uri[uri], uri, lang) if uri in by_uri else _foreign(site_src, uri, langs[0])
        for uri, langs in posts.items()
    ]


def checked(head: Head, uri: str, template: str) -> Head:
    """Return *head* if it has what a post needs: title, summary, and the date that its file's name says.

    Raises PageError, naming the file and the key.
    """
    for key, value in (("title", head.title), ("date", head.day), ("summary", head.summary)):
        if not value:
            raise PageError("%(template)s: a post needs '%(key)s' in its front matter", template=template, key=key)
    match = _NAME.fullmatch(uri.removeprefix(f"{FOLDER}/"))
    if match and head.day is not None and head.day.isoformat() != match[1]:
        raise PageError(
            "%(template)s: its date is %(day)s, its name says %(name)s", template=template, day=head.day, name=match[1]
        )
    return head


def _own(head: Head, uri: str, lang: str) -> Post:
    # What stands in a file of this repository was written by its owner: markup in it is meant.
    return Post(head.title or uri, head.day or date.min, Markup(head.summary or ""), uri, lang)


def _foreign(site_src: Path, uri: str, lang: str) -> Post:
    """Read the head alone: what it quotes is filled in only in its own language, so its summary is left out."""
    path = site_src / lang / uri
    head = checked(read_head(path.read_text(encoding="utf-8"), str(path)), uri, f"{lang}/{uri}")
    return Post(head.title or uri, head.day or date.min, Markup(""), uri, lang)

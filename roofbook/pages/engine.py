"""Jinja, set so that a value cannot become markup and a mistake names its template and line."""

import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)
from markupsafe import Markup

from roofbook.errors import PageError, RoofbookError
from roofbook.pages.escape import json_in_html, text
from roofbook.words import Words

_TEMPLATES: Final = (".j2", ".md")


class Engine:
    """Renders the templates of *folders* in one language.

    What a template prints is escaped for Markdown and HTML; the sentences of ``say`` may hold markup, their values not.
    *compiled* is where templates are kept as Python runs them (None: nowhere).
    """

    def __init__(self, folders: tuple[Path, ...], words: Words, compiled: Path | None = None) -> None:
        self._words = words
        self._environment = Environment(
            loader=ChoiceLoader([FileSystemLoader(folder) for folder in folders]),
            undefined=StrictUndefined,
            autoescape=True,
            finalize=text,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            bytecode_cache=_kept(compiled),
        )
        names: dict[str, Any] = {
            "lang": words.lang,
            "words": words,
            "say": self._say,
            "say_n": self._say_n,
            "strong": _strong,
            "number": words.number,
            "significant": words.significant,
            "day": words.day,
            "date": words.date,
            "moment": words.moment,
            "json": json_in_html,
        }
        cast("dict[str, Any]", self._environment.globals).update(names)

    def render(self, template: str, context: Mapping[str, Any], **where: str) -> str:
        """Return *template* filled with *context*.

        Raises PageError with template, line, page and language for a template that is wrong.
        """
        try:
            return self._environment.get_template(template).render(context)
        except (
            RoofbookError,
            TemplateError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as problem:
            place, message = _place_of(problem, template), _message_of(problem)
            raise PageError(
                "%(place)s: %(problem)s (page '%(page)s', language '%(lang)s')",
                place=place, problem=message, page=where.get("page", template), lang=self._words.lang,
            ) from problem  # fmt: skip

    def _say(self, message: str, /, **values: object) -> Markup:
        return Markup(self._words.say(message, **_escaped(values)))

    def _say_n(self, one: str, many: str, n: int, /, **values: object) -> Markup:
        return Markup(self._words.say_n(one, many, n, **_escaped(values)))


def _kept(folder: Path | None) -> FileSystemBytecodeCache | None:
    """Return the cache in *folder*; None where there can be none, which is no reason to fail."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


def _strong(value: object) -> Markup:
    return Markup("<strong>") + text(value) + Markup("</strong>")


def _escaped(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value if isinstance(value, int | float) else text(value) for name, value in values.items()}


def _place_of(problem: Exception, template: str) -> str:
    """Return the file and line of the innermost template frame, as Jinja rewrites tracebacks to them."""
    if isinstance(problem, TemplateSyntaxError):
        return f"{problem.filename or problem.name or template}:{problem.lineno}"
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename.endswith(_TEMPLATES)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else template


def _message_of(problem: Exception) -> str:
    if isinstance(problem, TemplateNotFound):
        return f"no template {problem.name}"
    return " ".join(str(problem).split()) or type(problem).__name__

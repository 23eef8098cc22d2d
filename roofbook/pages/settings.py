"""What mkdocs.yml says about the report: its languages, its owner, its time zone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from roofbook.errors import PageError

_SHORT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
_SAFE_SCHEMES: Final = ("https://", "http://", "mailto:")


@dataclass(frozen=True)
class Language:
    """One language of the site: its code, its name in itself, and what the site is called in it."""

    code: str
    name: str
    site_name: str


@dataclass(frozen=True)
class Link:
    """A link of the owner's."""

    name: str
    url: str


@dataclass(frozen=True)
class Owner:
    """Whose report it is; what is absent is left out of the page. *role* by language code ("" for every language)."""

    name: str | None = None
    role: Mapping[str, str] | None = None
    links: tuple[Link, ...] = ()

    def role_in(self, lang: str) -> str | None:
        return None if self.role is None else self.role.get(lang) or self.role.get("")


@dataclass(frozen=True)
class Named:
    """What a short name stands for: a subject, and of it one run's rows only, where *run* is not None."""

    subject: str
    run: str | None = None


@dataclass(frozen=True)
class Settings:
    """The report as a whole; the first language stands at the site's root, the others below /CODE/."""

    languages: tuple[Language, ...]
    owner: Owner = Owner()
    zone: str = "UTC"
    subjects: Mapping[str, Named] = field(default_factory=dict[str, Named])
    """Short names that prose may quote subjects by."""

    @property
    def main(self) -> Language:
        return self.languages[0]

    def language(self, code: str) -> Language:
        return next(language for language in self.languages if language.code == code)


def read_settings(path: Path) -> Settings:
    """Return the settings that the mkdocs.yml at *path* has under ``extra: owner, report``.

    Raises PageError, naming file and key, for what is missing, misspelt or no address.
    """
    try:
        config = yaml.load(path.read_text(encoding="utf-8"), Loader=_AnyTag)
    except (OSError, yaml.YAMLError) as problem:
        raise PageError("%(path)s cannot be read: %(problem)s", path=path, problem=_one_line(problem)) from problem
    reader = _Reader(path)
    extra = reader.mapping(reader.mapping(config or {}, "").get("extra") or {}, "extra")
    report = reader.mapping(extra.get("report") or {}, "extra.report")
    reader.only(report, "extra.report", "languages", "zone", "subjects")
    languages = tuple(
        reader.language(str(code), value)
        for code, value in reader.mapping(report.get("languages") or {}, "extra.report.languages").items()
    )
    if not languages:
        raise PageError("%(path)s: extra.report.languages names no language", path=path)
    owner, zone = reader.owner(extra.get("owner") or {}), str(report.get("zone", "UTC"))
    return Settings(languages, owner, zone, reader.subjects(report.get("subjects") or {}))


class _AnyTag(yaml.SafeLoader):
    """mkdocs' own tags (!ENV, !relative) are mkdocs' business; what we read has none."""


def _nothing(_loader: yaml.SafeLoader, _suffix: str, _node: yaml.Node) -> None:
    return None


_AnyTag.add_multi_constructor("!", _nothing)  # pyright: ignore[reportUnknownMemberType] - the stubs leave it untyped
_AnyTag.add_multi_constructor("tag:yaml.org,2002:python/", _nothing)  # pyright: ignore[reportUnknownMemberType]


class _Reader:
    """Turns parts of the file into values, and complains with their keys."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mapping(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise PageError("%(path)s: '%(key)s' should be a list of keys and values", path=self._path, key=key)
        return {str(name): inner for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def only(self, value: Mapping[str, Any], key: str, *known: str) -> None:
        for name in value:
            if name not in known:
                raise PageError(
                    "%(path)s: unknown key '%(key)s.%(name)s'; there are: %(known)s",
                    path=self._path, key=key, name=name, known=", ".join(known),
                )  # fmt: skip

    def text(self, value: Mapping[str, Any], key: str, name: str) -> str:
        if not isinstance(value.get(name), str) or not value[name].strip():
            raise PageError("%(path)s: '%(key)s.%(name)s' should be a text", path=self._path, key=key, name=name)
        return value[name].strip()

    def language(self, code: str, value: Any) -> Language:
        key = f"extra.report.languages.{code}"
        found = self.mapping(value, key)
        self.only(found, key, "name", "site_name")
        return Language(code, self.text(found, key, "name"), self.text(found, key, "site_name"))

    def subjects(self, value: Any) -> dict[str, Named]:
        found = self.mapping(value, "extra.report.subjects")
        for name in found:
            if not _SHORT_NAME.fullmatch(name):
                raise PageError(
                    "%(path)s: 'extra.report.subjects.%(name)s': a short name is small letters, digits and hyphens",
                    path=self._path, name=name,
                )  # fmt: skip
        return {name: self._named(one, f"extra.report.subjects.{name}") for name, one in found.items()}

    def _named(self, value: Any, key: str) -> Named:
        if isinstance(value, str):
            return Named(value.strip())
        found = self.mapping(value, key)
        self.only(found, key, "subject", "run")
        return Named(self.text(found, key, "subject"), self.text(found, key, "run") if found.get("run") else None)

    def owner(self, value: Any) -> Owner:
        found = self.mapping(value, "extra.owner")
        self.only(found, "extra.owner", "name", "role", "links")
        return Owner(
            name=self.text(found, "extra.owner", "name") if found.get("name") else None,
            role=self._role(found.get("role")),
            links=tuple(self._link(link, number) for number, link in enumerate(found.get("links") or (), 1)),
        )

    def _role(self, value: Any) -> Mapping[str, str] | None:
        if not value:
            return None
        if isinstance(value, str):
            return {"": value.strip()}
        roles = self.mapping(value, "extra.owner.role")
        return {lang: self.text(roles, "extra.owner.role", lang) for lang in roles}

    def _link(self, value: Any, number: int) -> Link:
        key = f"extra.owner.links.{number}"
        found = self.mapping(value, key)
        self.only(found, key, "name", "url")
        url = self.text(found, key, "url")
        if not url.startswith(_SAFE_SCHEMES):
            raise PageError(
                "%(path)s: '%(key)s.url' is '%(url)s'; an address starts with https://, http:// or mailto:",
                path=self._path, key=key, url=url,
            )  # fmt: skip
        return Link(self.text(found, key, "name"), url)


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split())

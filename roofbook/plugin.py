"""The build step of mkdocs, and the only module that knows mkdocs.

One build a language: the first language stands at the site's root and starts the builds of the others when it is done,
each with its own search index and sitemap below /CODE/.
"""

import gzip
import os
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, cast

from mkdocs.commands.build import build
from mkdocs.config import load_config  # pyright: ignore[reportUnknownVariableType] - its **kwargs are untyped
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from roofbook.charts.cache import FigureCache
from roofbook.errors import RoofbookError
from roofbook.pages.kept import kept_site
from roofbook.pages.search import complete_search
from roofbook.pages.security import with_policy
from roofbook.pages.settings import Settings, read_settings
from roofbook.pages.site import Addresses, Section, Site
from roofbook.pages.site import Page as ReportPage
from roofbook.pages.social import Posters, posters
from roofbook.places import Places
from roofbook.words import load_words

_LANGUAGE: Final = "report_language"
"""In ``config.extra``, because mkdocs keeps plugin objects: a language kept on one would leak into the next build."""

_CACHE: Final = Path(".cache") / "roofbook"

_FIGURE: Final = re.compile(r'<div id="([\w-]+)" data-figure(?:="")?></div>')

log = get_plugin_logger("roofbook")


class RoofbookConfig(Config):
    """No options: what the report needs to know stands under ``extra``, where every site builder can read it."""


class RoofbookPlugin(BasePlugin[RoofbookConfig]):
    """Makes the pages of the report and hands them to mkdocs."""

    _settings: Settings
    _places: Places
    _site: Site
    _posters: Posters
    _serving = False

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:  # noqa: ARG002
        self._serving = command == "serve"

    @event_priority(100)  # before the search plugin, which copies its options
    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        path = Path(config.config_file_path)
        self._places = Places(path.parent)
        with self._told_to_mkdocs():
            self._settings = read_settings(path)
            lang = self._lang(config)
            words = load_words(self._places.locale, lang)
        extensions = cast("dict[str, dict[str, Any]]", config["mdx_configs"])
        extensions.setdefault("toc", {})["permalink_title"] = words.say("Link to this section")
        if config.site_url:
            config.site_url = f"{config.site_url.rstrip('/')}/"
        config.theme["language"] = lang
        config.site_name = self._settings.language(lang).site_name
        plugins = cast("dict[str, Any]", config.plugins)
        search = plugins.get("material/search") or plugins.get("search")
        if search is not None:
            search.config.lang = [lang]
        return config

    def on_files(self, files: Files, /, *, config: MkDocsConfig) -> Files:
        with self._told_to_mkdocs():
            folder = self._places.root / _CACHE
            cache = FigureCache(folder)
            self._site = kept_site(self._places, self._settings, self._lang(config), cache, folder)
        for sentence in self._site.missing:
            log.warning(f"no translation into '{self._site.lang}' for: {sentence}")
        # Prose was rendered with the other pages: what is no page is published as it lies in the folder.
        for file in files.documentation_pages():
            files.remove(file)
        for page in self._site.pages:
            files.append(File.generated(config, page.uri, content=page.markdown))
        for uri, content in self._site.assets.items():
            files.append(_asset(config, uri, content))
        config.nav = _nav(self._site.navigation)
        self._posters = self._share(files, config, cache)
        return files

    def _share(self, files: Files, config: MkDocsConfig, cache: FigureCache) -> Posters:
        """Add the pictures that shared links show; they need an address to be found at."""
        if not config.site_url:
            return Posters({}, {})
        with self._told_to_mkdocs():
            made = posters(self._site, config.site_name, self._places, cache)
        for uri, content in made.files.items():
            files.append(_asset(config, uri, content))
        if not made.files and any(page.lead for page in self._site.pages):
            log.info(f"'{self._site.lang}': no face with its letters here, so shared links show no picture")
        return made

    def on_env(self, env: Any, /, *, config: MkDocsConfig, **_: Any) -> Any:
        """Let the sitemap name each page in every language, and the page that stands for a missing one speak each."""
        here = self._folder(self._lang(config))
        root = (config.site_url or "").removesuffix(f"{here}/" if here else "")
        env.globals["languages"] = [
            {
                "lang": language.code,
                "name": language.name,
                "root": root + self._below(language.code, ""),
                "home": Addresses("404.md", here).asset(self._below(language.code, "index.html")),
                "words": load_words(self._places.locale, language.code, zone=self._settings.zone),
            }
            for language in self._settings.languages
        ]
        env.globals["exists_in"] = self._exists_in
        return env

    def on_page_context(
        self, context: TemplateContext, /, *, page: Page, config: MkDocsConfig, **_: Any
    ) -> TemplateContext:
        """Let the header link to the same page in the other languages, and a shared link show the page's picture."""
        here = self._lang(config)
        addresses = Addresses(page.file.src_uri, self._folder(here))
        cast("dict[str, Any]", context)["twins"] = [
            {
                "lang": language.code,
                "name": language.name,
                "href": addresses.asset(self._below(language.code, page.file.dest_uri)),
            }
            for language in self._settings.languages
            if language.code != here and self._site.page(page.file.src_uri).exists_in(language.code)
        ]
        poster = self._posters.of(page.file.src_uri)
        if poster is not None:
            told = {"image": f"{config.site_url}{poster.uri}", "message": poster.message, "alt": poster.description}
            cast("dict[str, Any]", context)["poster"] = told
        return context

    def on_post_page(self, output: str, /, *, page: Page, **_: Any) -> str:
        figures = self._site.page(page.file.src_uri).figures
        return self._protected(_FIGURE.sub(lambda place: figures[place[1]], output))

    def on_post_template(self, output_content: str, /, *, template_name: str, **_: Any) -> str:
        return self._protected(output_content) if template_name.endswith(".html") else output_content

    @event_priority(-100)  # after the search plugin wrote this language's index
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        complete_search(Path(config.site_dir))
        _forget_the_day(Path(config.site_dir) / "sitemap.xml.gz")
        if self._lang(config) != self._settings.main.code:
            return
        for language in self._settings.languages[1:]:
            below = load_config(
                config.config_file_path,
                strict=config.strict,
                site_dir=str(Path(config.site_dir) / language.code),
                site_url=f"{config.site_url.rstrip('/')}/{language.code}/" if config.site_url else None,
            )
            below.extra[_LANGUAGE] = language.code
            build(below)

    def on_serve(
        self, server: LiveReloadServer, /, *, config: MkDocsConfig, builder: Callable[..., Any]  # noqa: ARG002
    ) -> LiveReloadServer:  # fmt: skip
        for folder in ("data", "templates"):
            server.watch(str(self._places.root / folder))
        return server

    def _exists_in(self, uri: str, lang: str) -> bool:
        return self._site.page(uri).exists_in(lang)

    def _lang(self, config: MkDocsConfig) -> str:
        return str(cast("dict[str, Any]", config.extra).get(_LANGUAGE, self._settings.main.code))

    def _folder(self, lang: str) -> str:
        return "" if lang == self._settings.main.code else lang

    def _below(self, lang: str, uri: str) -> str:
        """Return where *uri* of that language lies below the site's root."""
        folder = self._folder(lang)
        return f"{folder}/{uri}" if folder else uri

    @contextmanager
    def _told_to_mkdocs(self) -> Generator[None]:
        """Turn an error of ours into the one that mkdocs prints as a line, without a stack trace.

        Files are called by where they lie in the report.
        """
        try:
            yield
        except RoofbookError as problem:
            raise PluginError(f"roofbook: {problem}".replace(f"{self._places.root}{os.sep}", "")) from problem

    def _protected(self, output: str) -> str:
        """Add the page's policy; not while serving, where mkdocs adds a script of its own afterwards."""
        return output if self._serving else with_policy(output)


def _forget_the_day(packed: Path) -> None:
    """Pack the file again without the moment it was packed at: the same data gives the same site on any day."""
    if packed.is_file():
        packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()), mtime=0))


def _asset(config: MkDocsConfig, uri: str, content: bytes | Path) -> File:
    if isinstance(content, Path):
        return File.generated(config, uri, abs_src_path=str(content))
    return File.generated(config, uri, content=content)


def _nav(navigation: Iterable[ReportPage | Section]) -> list[dict[str, Any]]:
    """Return the navigation as mkdocs takes it; sections of one group stand below it."""
    nav: list[dict[str, Any]] = []
    for group, entries in groupby(navigation, lambda entry: entry.group if isinstance(entry, Section) else None):
        told = [_entry(entry) for entry in entries]
        nav += told if group is None else [{group: told}]
    return nav


def _entry(entry: ReportPage | Section) -> dict[str, Any]:
    if isinstance(entry, Section):
        return {entry.title: [{page.label: page.uri} for page in entry.pages]}
    return {entry.label: entry.uri}

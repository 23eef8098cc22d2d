"""The build step of mkdocs, and the only module that knows mkdocs.

One build a language: the first language stands at the site's root and starts the builds of the others when it is done,
each with its own search index and sitemap below /CODE/.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from roofbook.charts.cache import FigureCache
from roofbook.errors import RoofbookError
from roofbook.pages.report import build_site
from roofbook.pages.security import with_policy
from roofbook.pages.settings import Settings, read_settings
from roofbook.pages.site import Addresses, Section, Site
from roofbook.places import Places

_LANGUAGE: Final = "report_language"
"""In ``config.extra``: mkdocs keeps plugin objects between builds, so a language kept on one would leak into the next."""

_CACHE: Final = Path(".cache") / "roofbook"

_FIGURE: Final = re.compile(r'<div id="([\w-]+)" data-figure(?:="")?></div>')

log = get_plugin_logger("roofbook")


class RoofbookConfig(Config):
    """No options: what the report needs to know stands under ``extra`` (owner, report), where every builder can read it."""


class RoofbookPlugin(BasePlugin[RoofbookConfig]):
    """Makes the pages of the report and hands them to mkdocs."""

    _settings: Settings
    _places: Places
    _site: Site
    _serving = False

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:  # noqa: ARG002 - mkdocs' signature
        self._serving = command == "serve"

    @event_priority(100)  # before the search plugin, which copies its options
    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        path = Path(config.config_file_path)
        with _told_to_mkdocs():
            self._settings = read_settings(path)
        self._places = Places(path.parent)
        lang = self._lang(config)
        config.theme["language"] = lang
        config.site_name = self._settings.language(lang).site_name
        search: Any = config.plugins.get("material/search") or config.plugins.get("search")
        if search is not None:
            search.config.lang = [lang]
        return config

    def on_files(self, files: Files, /, *, config: MkDocsConfig) -> Files:
        lang = self._lang(config)
        with _told_to_mkdocs():
            self._site = build_site(self._places, self._settings, lang, FigureCache(self._places.root / _CACHE))
        # Prose was rendered with the other pages: of the folder only what is no page is published as it lies there.
        for file in list(files):
            if file.is_documentation_page():
                files.remove(file)
        for page in self._site.pages:
            files.append(File.generated(config, page.uri, content=page.markdown))
        if lang == self._settings.main.code:
            for uri, content in self._site.assets.items():
                files.append(_asset(config, uri, content))
        config.nav = [_entry(entry) for entry in self._site.navigation]
        return files

    def on_page_context(
        self, context: dict[str, Any], /, *, page: Page, config: MkDocsConfig, nav: Navigation
    ) -> dict[str, Any]:  # noqa: ARG002
        here = self._lang(config)
        addresses = Addresses(page.file.src_uri, self._folder(here))
        context["twins"] = [
            {
                "lang": language.code,
                "name": language.name,
                "href": addresses.asset(self._twin(language.code, page.file.dest_uri)),
            }
            for language in self._settings.languages
            if language.code != here
        ]
        return context

    def on_post_page(self, output: str, /, *, page: Page, config: MkDocsConfig) -> str:
        figures = next((p.figures for p in self._site.pages if p.uri == page.file.src_uri), {})
        filled = _FIGURE.sub(lambda place: figures[place[1]], output)
        return filled if self._serving else with_policy(filled)

    def on_post_template(self, output_content: str, /, *, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG002
        if self._serving or not template_name.endswith(".html"):
            return output_content
        return with_policy(output_content)

    def on_env(self, env: Any, /, *, config: MkDocsConfig, files: Files) -> Any:  # noqa: ARG002
        """Let the sitemap name each page in every language."""
        root = (config.site_url or "").removesuffix(f"{self._folder(self._lang(config))}/")
        env.globals["languages"] = [
            {
                "lang": language.code,
                "root": f"{root}{self._folder(language.code)}{'/' if self._folder(language.code) else ''}",
            }
            for language in self._settings.languages
        ]
        return env

    @event_priority(-100)  # after the search plugin wrote this language's index
    def on_post_build(self, *, config: MkDocsConfig) -> None:
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

    def on_serve(self, server: LiveReloadServer, /, *, config: MkDocsConfig, builder: Any) -> LiveReloadServer:  # noqa: ARG002
        for folder in (self._places.root / "data", self._places.root / "templates"):
            server.watch(str(folder))
        return server

    def _lang(self, config: MkDocsConfig) -> str:
        return str(config.extra.get(_LANGUAGE, self._settings.main.code))

    def _folder(self, lang: str) -> str:
        return "" if lang == self._settings.main.code else lang

    def _twin(self, lang: str, dest_uri: str) -> str:
        folder = self._folder(lang)
        return f"{folder}/{dest_uri}" if folder else dest_uri


@contextmanager
def _told_to_mkdocs() -> Iterator[None]:
    """Turn an error of ours into the one that mkdocs prints as a line, without a stack trace."""
    try:
        yield
    except RoofbookError as problem:
        raise PluginError(f"roofbook: {problem}") from problem


def _asset(config: MkDocsConfig, uri: str, content: bytes | Path) -> File:
    if isinstance(content, Path):
        return File.generated(config, uri, abs_src_path=str(content))
    return File.generated(config, uri, content=content)


def _entry(entry: Any) -> dict[str, Any]:
    if isinstance(entry, Section):
        return {entry.title: [{page.title: page.uri} for page in entry.pages]}
    return {entry.title: entry.uri}

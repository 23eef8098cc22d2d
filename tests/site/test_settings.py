"""What mkdocs.yml says about the report, and what it is told when it says it wrongly."""

from pathlib import Path

import pytest

from roofbook.errors import PageError
from roofbook.pages.settings import Language, Link, Owner, Settings, read_settings

LANGUAGES = "languages: {ko: {name: 한국어, site_name: 노트}, en: {name: English, site_name: Notes}}"


def settings(folder: Path, extra: str) -> Settings:
    path = folder / "mkdocs.yml"
    path.write_text(f"site_name: x\nsite_url: !ENV [SITE_URL, '']\nextra:\n{extra}\n", encoding="utf-8")
    return read_settings(path)


def test_a_whole_report(tmp_path: Path) -> None:
    """Languages in their order, the zone, and an owner with a role in each language."""
    read = settings(
        tmp_path,
        f"  report: {{zone: Asia/Seoul, {LANGUAGES}}}\n"
        "  owner: {name: Gildong, role: {ko: 개발자, en: Developer}, links: [{name: Site, url: 'https://example.com'}]}",
    )

    assert read == Settings(
        languages=(Language("ko", "한국어", "노트"), Language("en", "English", "Notes")),
        owner=Owner("Gildong", {"ko": "개발자", "en": "Developer"}, (Link("Site", "https://example.com"),)),
        zone="Asia/Seoul",
    )
    assert (read.main.code, read.owner.role_in("en"), read.owner.role_in("fr")) == ("ko", "Developer", None)


def test_an_owner_may_be_absent(tmp_path: Path) -> None:
    """What is absent is left out."""
    assert settings(tmp_path, f"  report: {{{LANGUAGES}}}").owner == Owner()


def test_one_role_for_all_languages(tmp_path: Path) -> None:
    """A role that is a text holds in every language."""
    assert settings(tmp_path, f"  report: {{{LANGUAGES}}}\n  owner: {{role: SRE}}").owner.role_in("ko") == "SRE"


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ("  report: {}", "extra.report.languages names no language"),
        ("  report: {languages: {ko: {name: 한국어}}}", "'extra.report.languages.ko.site_name' should be a text"),
        ("  report: {language: {}}", "unknown key 'extra.report.language'; there are: languages, zone"),
        ("  report: [ko, en]", "'extra.report' should be a list of keys and values"),
        (
            f"  report: {{{LANGUAGES}}}\n  owner: {{nmae: x}}",
            "unknown key 'extra.owner.nmae'; there are: name, role, links",
        ),
        (
            f"  report: {{{LANGUAGES}}}\n  owner: {{links: [{{name: x, url: 'javascript:1'}}]}}",
            "'extra.owner.links.1.url' is 'javascript:1'; an address starts with https://",
        ),
        ("  report: {", "cannot be read"),
    ],
)
def test_a_mistake_is_named_by_its_key(tmp_path: Path, extra: str, complaint: str) -> None:
    """File and key are named."""
    with pytest.raises(PageError) as raised:
        settings(tmp_path, extra)

    assert complaint in str(raised.value)
    assert "mkdocs.yml" in str(raised.value)

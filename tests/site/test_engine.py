"""A template that is wrong names itself, its line, the page and the language."""

from pathlib import Path

import pytest

from roofbook.errors import PageError
from roofbook.pages.engine import Engine
from roofbook.words import Words


def rendered(folder: Path, template: str, **context: object) -> str:
    (folder / "page.md.j2").write_text(template, encoding="utf-8")
    return Engine((folder,), Words("en")).render("page.md.j2", context, page="prefill.md")


def test_values_are_text_and_sentences_may_hold_markup(tmp_path: Path) -> None:
    """What a template prints is escaped, also inside a sentence; the sentence itself is ours."""
    page = rendered(tmp_path, '{{ x }} {{ say("*%(n)d* of %(x)s", n=3, x=x) }}', x="<b>")

    assert page == "&#60;b&#62; *3* of &#60;b&#62;"


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("a\n{{ nothing }}", "page.md.j2:2: 'nothing' is undefined"),
        ("a\n\n{% if %}", "page.md.j2:3: Expected an expression"),
        ('a\n{{ say("%(x)s") }}', "page.md.j2:2: The sentence '%(x)s' cannot be filled in ('en')"),
        ("{{ 1 / 0 }}", "page.md.j2:1: division by zero"),
        ("{% include 'gone.j2' %}", "page.md.j2:1: no template gone.j2"),
    ],
)
def test_a_mistake_names_template_and_line(tmp_path: Path, template: str, complaint: str) -> None:
    """Template, line, page and language, and never a stack trace."""
    with pytest.raises(PageError) as raised:
        rendered(tmp_path, template)

    assert complaint in str(raised.value)
    assert str(raised.value).endswith("(page 'prefill.md', language 'en')")

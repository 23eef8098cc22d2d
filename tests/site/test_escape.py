"""Whatever came from a row, a server or a file is text: in Markdown, in HTML, in addresses."""

import html
import re
from typing import Any

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from roofbook.pages.escape import MAX_SLUG, json_in_html, plain_title, slug, text

EXTENSIONS = ["attr_list", "md_in_html", "tables", "admonition", "footnotes", "pymdownx.superfences", "toc"]


def read_back(rendered: str) -> str:
    """Return what a reader sees of rendered HTML that holds one paragraph."""
    inside = re.fullmatch(r"<p>(.*)</p>", rendered.strip(), re.DOTALL)
    assert inside is not None, rendered
    assert "<" not in inside[1], rendered
    return html.unescape(inside[1])


NAMES = """\
<b>x</b>
a | b
*x* _y_ `z`
# x {: #id }
1. one
2) two
- item
+ item
=== x
: x
![x](y)
[x](javascript:1)
&lt;
https://example.com/<x>
$x$ ~~x~~ a\\*b
[^1]: x
    code
8,016
48.3 s"""


@pytest.mark.parametrize("name", NAMES.splitlines())
def test_a_name_reads_as_it_is(name: str) -> None:
    """As a paragraph of its own in Markdown, a name is shown sign by sign."""
    assert read_back(markdown.markdown(text(name), extensions=EXTENSIONS)) == name.strip()


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1))
def test_no_text_becomes_markup(name: str) -> None:
    """Any printable text is one paragraph without a tag in it, or nothing but blanks."""
    rendered = markdown.markdown(text(name), extensions=EXTENSIONS)

    assert re.sub(r"</?p>", "", rendered).find("<") == -1


def test_markup_of_ours_is_left_alone() -> None:
    """What was escaped once is not escaped again."""
    assert text(Markup("<strong>x</strong>")) == "<strong>x</strong>"


def test_lines_and_hidden_signs_are_taken_out() -> None:
    """A line break is a blank; what is not seen, or turns the text around, goes."""
    assert text("a\nb\u202ec\u0000d") == "a bc d"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("Mac mini M4, 32 GB", "mac-mini-m4-32-gb"), ("qwen2.5:7b", "qwen2-5-7b"), ("../../etc", "etc")],
)
def test_an_address_is_plain(value: str, expected: str) -> None:
    """Lower-case letters, digits and hyphens."""
    assert slug(value) == expected


def test_long_or_foreign_names_get_different_addresses() -> None:
    """Names that are cut off, or have no Latin letter, differ by their digest."""
    long = "x" * 200
    slugs = [slug(long + "1"), slug(long + "2"), slug("한글"), slug("모델"), slug("")]

    assert len(set(slugs)) == 5
    assert {bool(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one)) and len(one) <= MAX_SLUG for one in slugs} == {True}


def test_a_title_is_html_and_no_markdown() -> None:
    """In navigation and title a name is escaped for HTML only."""
    assert plain_title("a*b <i>") == "a*b &lt;i&gt;"


@pytest.mark.parametrize("value", ["</template><script>1</script>", "<!--", '"', "\u2028"])
def test_json_may_stand_in_an_element(value: Any) -> None:
    """The browser reads back the same JSON, and no tag begins inside."""
    written = json_in_html({"x": value})

    assert "<" not in written
    assert html.unescape(written).startswith('{"x":')

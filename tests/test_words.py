"""Sentences, numbers and dates in one language, and the check that nothing is left untranslated."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from roofbook.errors import RecordError, WordsError
from roofbook.words import load_words
from roofbook.words.check import complaints, said_in
from roofbook.words.update import update

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
)


def report_with(root: Path, catalogue: str, python: str = "", template: str = "", name: str = "report.po") -> Path:
    """Lay out the folders that the check reads, and return the locale folder."""
    locale = root / "templates" / "locale"
    (locale / "ko" / "LC_MESSAGES").mkdir(parents=True, exist_ok=True)
    (locale / "ko" / "LC_MESSAGES" / name).write_text(HEADER + catalogue, encoding="utf-8")
    (root / "roofbook").mkdir(exist_ok=True)
    (root / "roofbook" / "said.py").write_text(python, encoding="utf-8")
    (root / "templates" / "pages").mkdir(exist_ok=True)
    (root / "templates" / "pages" / "page.md.j2").write_text(template, encoding="utf-8")
    return locale


def test_english_is_the_source_text_and_needs_no_catalogue(tmp_path: Path) -> None:
    """English says the sentence as it is written, with its values in place."""
    words = load_words(tmp_path, "en")

    assert words.say("%(share)s of 100%%", share="83") == "83 of 100%"


def test_catalogues_of_a_language_are_read_as_one(tmp_path: Path) -> None:
    """A sentence is found in whichever .po of the language has it."""
    locale = report_with(tmp_path, 'msgid "prompt"\nmsgstr "프롬프트"\n', name="collect.po")
    report_with(tmp_path, 'msgid "%(n)d run"\nmsgid_plural "%(n)d runs"\nmsgstr[0] "측정 %(n)d회"\n', name="report.po")
    words = load_words(locale, "ko")

    assert words.say("prompt") == "프롬프트"
    assert words.say_n("%(n)d run", "%(n)d runs", 1) == "측정 1회"


def test_an_error_is_its_own_key(tmp_path: Path) -> None:
    """The message of an error, said with its values, is the error in the reader's language."""
    locale = report_with(tmp_path, 'msgid "%(path)s is broken"\nmsgstr "깨진 파일: %(path)s"\n')
    error = RecordError("%(path)s is broken", path=Path("a.parquet"))

    assert load_words(locale, "ko").say(error.message, **error.values) == "깨진 파일: a.parquet"
    assert str(error) == "a.parquet is broken"


def test_a_missing_sentence_is_said_in_english_and_noted(tmp_path: Path) -> None:
    """Words that are not strict go on in English and remember what they lacked, fuzzy entries included."""
    words = load_words(report_with(tmp_path, '#, fuzzy\nmsgid "old"\nmsgstr "옛말"\n'), "ko")

    assert words.say("old") == "old"
    assert words.say_n("one %(what)s", "%(n)d %(what)ss", 2, what="row") == "2 rows"
    assert words.missing == {"old", "one %(what)s"}


def test_strict_words_refuse_a_missing_sentence(tmp_path: Path) -> None:
    """Strict words raise an error that names language and sentence."""
    words = load_words(report_with(tmp_path, ""), "ko", strict=True)

    with pytest.raises(WordsError, match="No translation into 'ko' for: hello"):
        words.say("hello")


@pytest.mark.parametrize(
    ("lang", "zone", "complaint"),
    [
        ("xx", "UTC", "Unknown language or time zone"),
        ("ko", "Mars/Base", "Unknown language or time zone"),
        ("fr", "UTC", "No catalogue for the language 'fr'"),
    ],
)
def test_unknown_languages_and_zones_are_named(tmp_path: Path, lang: str, zone: str, complaint: str) -> None:
    """A language without catalogue, an unknown language and an unknown zone each get their own line."""
    with pytest.raises(WordsError, match=complaint):
        load_words(report_with(tmp_path, ""), lang, zone=zone)


def test_a_broken_catalogue_names_its_file(tmp_path: Path) -> None:
    """A file that is no catalogue is named."""
    locale = report_with(tmp_path, 'msgid "a"\nmsgstr "b"\nthis is no line of a catalogue\n')

    with pytest.raises(WordsError, match=r"report\.po is no gettext catalogue"):
        load_words(locale, "ko")


def test_a_value_that_is_missing_names_the_sentence(tmp_path: Path) -> None:
    """A sentence whose place gets no value is an error, not a half-filled sentence."""
    with pytest.raises(WordsError, match="cannot be filled in"):
        load_words(tmp_path, "en").say("%(a)s and %(b)s", a=1)


@pytest.mark.parametrize(
    ("value", "decimals", "written"),
    [
        (3240, 0, "3,240"),
        (21.349, 1, "21.3"),
        (-0.04, 1, "0.0"),
        (-0.4, 0, "0"),
        (None, 0, "unknown"),
        (float("nan"), 1, "unknown"),
    ],
)
def test_numbers(tmp_path: Path, value: float | None, decimals: int, written: str) -> None:
    """Thousands are grouped, decimals exact, no minus zero, and what is not known is said so."""
    assert load_words(tmp_path, "en").number(value, decimals) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(17846.2, "17,846"), (4.5279, "4.53"), (0.00019634, "0.000196"), (9.996, "10.0"), (0, "0"), (None, "unknown")],
)
def test_significant_digits(tmp_path: Path, value: float | None, written: str) -> None:
    """Three digits that mean something, and no whole digit rounded away."""
    assert load_words(tmp_path, "en").significant(value) == written


def test_a_moment_is_the_same_for_every_reader(tmp_path: Path) -> None:
    """B52: 00:30 UTC is told in the declared zone, with the zone's name."""
    locale = report_with(tmp_path, "")
    moment = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)

    assert load_words(locale, "ko", zone="Asia/Seoul").moment(moment) == "2026년 1월 1일 09:30 KST"
    assert load_words(locale, "en", zone="UTC").moment(moment) == "January 1, 2026 00:30 UTC"
    assert load_words(locale, "en", zone="America/New_York").date(moment) == "December 31, 2025"


def test_sentences_are_found_in_python_and_templates(tmp_path: Path) -> None:
    """say, say_n, mark, and every error of ours are found, in code and in templates."""
    report_with(
        tmp_path,
        "",
        python='words.say("a " "b")\nwords.say_n("one", "many", 3)\nmark("later")\n'
        'raise PlanError("bad %(key)s", key=1)\n',
        template='{{ say("in a template", n=3) }}{{ say_n("x", "xs", 2) }}',
    )

    assert said_in(tmp_path).keys == {
        ("a b",): "roofbook/said.py:1",
        ("one", "many"): "roofbook/said.py:2",
        ("later",): "roofbook/said.py:3",
        ("bad %(key)s",): "roofbook/said.py:4",
        ("in a template",): "templates/pages/page.md.j2:1",
        ("x", "xs"): "templates/pages/page.md.j2:1",
    }


WHOLE = 'msgid "Sent %(n)d of %(all)d"\nmsgstr "전체 %(all)d개 중 %(n)d개를 보냄"\n'


@pytest.mark.parametrize(
    ("catalogue", "complaint"),
    [
        (WHOLE, None),
        ("", "no translation for 'Sent %(n)d of %(all)d'"),
        (WHOLE + 'msgid "gone"\nmsgstr "사라짐"\n', "is said nowhere"),
        ("#, fuzzy\n" + WHOLE, "is marked fuzzy"),
        (WHOLE.replace("전체 %(all)d개 중 %(n)d개를 보냄", ""), "is not translated"),
        (WHOLE.replace("전체 %(all)d개 중 %(n)d개를 보냄", "Sent %(n)d of %(all)d"), "equals its English source"),
        (WHOLE.replace("전체 %(all)d개 중 ", ""), "has other places"),
        (WHOLE.replace("보냄", "100% 보냄"), "has other places"),
        (WHOLE.replace("%(n)d개를", "%(n)s개를"), "has other places"),
    ],
)
def test_the_check_names_what_is_wrong(tmp_path: Path, catalogue: str, complaint: str | None) -> None:
    """A whole catalogue has no complaint; each way to be broken has its own."""
    report_with(tmp_path, catalogue, python='words.say("Sent %(n)d of %(all)d", n=1, all=2)\n')

    found = complaints(tmp_path, "ko")

    if complaint is None:
        assert found == []
    else:
        assert len(found) == 1
        assert complaint in found[0]


def test_names_and_units_may_read_the_same(tmp_path: Path) -> None:
    """A sentence of places, units and names need not differ from its source."""
    same = 'msgid "%(n)s tok/s, TTFT (ms)"\nmsgstr "%(n)s tok/s, TTFT (ms)"\n'
    report_with(tmp_path, same, python='words.say("%(n)s tok/s, TTFT (ms)", n=1)\n')

    assert complaints(tmp_path, "ko") == []


def test_a_sentence_has_one_translation(tmp_path: Path) -> None:
    """Two files that translate one sentence in two ways are named."""
    report_with(tmp_path, 'msgid "run"\nmsgstr "측정"\n', python='words.say("run")\n', name="collect.po")
    report_with(tmp_path, 'msgid "run"\nmsgstr "실행"\n', python='words.say("run")\n', name="report.po")

    assert [text for text in complaints(tmp_path, "ko") if "translated otherwise" in text] != []


def test_a_sentence_that_cannot_be_taken_out_is_named(tmp_path: Path) -> None:
    """An f-string is no sentence that a catalogue could hold."""
    report_with(tmp_path, "", python='words.say(f"{1} run")\n')

    assert ["said.py:1" in text and "f-string" in text for text in complaints(tmp_path, "ko")] == [True]


def test_an_update_adds_what_is_new_and_takes_out_what_is_dead(tmp_path: Path) -> None:
    """A changed sentence keeps its translation, marked fuzzy; a new one is empty; comments and the rest stay."""
    catalogue = (
        '# -- rows\n\nmsgid "kept"\nmsgstr "남은 말"\n\n'
        'msgid "The rows of this \\"page\\""\nmsgstr "이 페이지의 행"\n\nmsgid "gone"\nmsgstr "사라진 말"\n'
    )
    said = 'say("kept"); say("The rows of that \\"page\\""); say_n("%(n)d cell", "%(n)d cells", 2)\n'
    locale = report_with(tmp_path, catalogue, python=said)

    done = update(tmp_path, "ko")

    assert (locale / "ko" / "LC_MESSAGES" / "report.po").read_text(encoding="utf-8") == (
        HEADER + '# -- rows\n\nmsgid "kept"\nmsgstr "남은 말"\n\n'
        '#, fuzzy\nmsgid "The rows of that \\"page\\""\nmsgstr "이 페이지의 행"\n\n'
        'msgid "%(n)d cell"\nmsgid_plural "%(n)d cells"\nmsgstr[0] ""\n'
    )
    assert len(done) == 4
    assert update(tmp_path, "ko") == []


def test_a_new_sentence_goes_where_its_neighbours_are(tmp_path: Path) -> None:
    """The catalogue that has the other sentences of the same file gets it."""
    locale = report_with(tmp_path, 'msgid "a"\nmsgstr "가"\n', template='{{ say("a") }}')
    report_with(
        tmp_path, 'msgid "b"\nmsgstr "나"\n', python='say("b")\nsay("new")', template='{{ say("a") }}', name="z.po"
    )
    update(tmp_path, "ko")

    assert 'msgid "new"' in (locale / "ko" / "LC_MESSAGES" / "z.po").read_text(encoding="utf-8")
    assert 'msgid "new"' not in (locale / "ko" / "LC_MESSAGES" / "report.po").read_text(encoding="utf-8")

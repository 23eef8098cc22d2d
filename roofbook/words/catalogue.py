"""Sentences, numbers and dates in one language.

A sentence is written in English where it is used, with %(name)s places (a per cent sign is %%), and is its own key in
the catalogues of the other languages: every ``LANG/LC_MESSAGES/*.po`` below the locale folder, read as one.
"""

import hashlib
import io
import math
from dataclasses import dataclass, field
from datetime import date, datetime
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_time
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po
from babel.numbers import format_decimal

from roofbook.errors import WordsError

SOURCE_LANGUAGE: Final = "en"


def mark(message: str) -> str:
    """Return *message* as it is: tells the extraction that it is said later, through a variable."""
    return message


class _Fallback(NullTranslations):
    """Stands behind the catalogues of a language and notes what fell through to the English source text."""

    def __init__(self, lang: str, *, strict: bool) -> None:
        super().__init__()
        self._lang = lang
        self._strict = strict
        self.missing: set[str] = set()

    def gettext(self, message: str) -> str:
        self._note(message)
        return message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        self._note(msgid1)
        return msgid1 if n == 1 else msgid2

    def _note(self, message: str) -> None:
        if self._strict:
            raise WordsError("No translation into '%(lang)s' for: %(sentence)s", lang=self._lang, sentence=message)
        self.missing.add(message)


@dataclass(frozen=True)
class Words:
    """One language: its sentences, and its way to write numbers and dates (all dates in *zone*)."""

    lang: str
    zone: str = "UTC"
    translations: NullTranslations = field(default_factory=NullTranslations, repr=False)
    missing: set[str] = field(default_factory=set[str], repr=False)
    """The sentences that were said in English for want of a translation."""
    fingerprint: str = ""
    """Changes whenever something may be said otherwise: what was made with these words is stale then."""

    def say(self, message: str, /, **values: object) -> str:
        """Return the sentence in this language with its values filled in.

        Raises WordsError where a value is missing, or where strict words lack the sentence.
        """
        return self._filled(self.translations.gettext(message), values)

    def say_n(self, one: str, many: str, n: int, /, **values: object) -> str:
        """Return the sentence in the form that *n* asks for; ``%(n)d`` in it is *n* unless *values* has its own."""
        return self._filled(self.translations.ngettext(one, many, n), {"n": n, **values})

    def number(self, value: float | None, decimals: int = 0) -> str:
        """Return *value* with exactly *decimals* decimals, its thousands grouped; None and NaN are unknown."""
        if value is None or not math.isfinite(value):
            return self.say("unknown")
        rounded = round(value, decimals) + 0.0 if decimals else round(value)  # + 0.0: never "-0.0"
        pattern = "#,##0" + ("." + "0" * decimals if decimals > 0 else "")
        return format_decimal(rounded, format=pattern, locale=self.lang)

    def significant(self, value: float | None, digits: int = 3) -> str:
        """Return *value* with at least *digits* significant digits; whole digits are never rounded away."""
        if value is None or not math.isfinite(value):
            return self.say("unknown")
        if value == 0:
            return self.number(0)
        exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
        return self.number(value, max(0, digits - 1 - exponent))

    def day(self, moment: datetime | date) -> date:
        """Return the day of *moment* in the report's zone; a day that was stated as such stays that day."""
        return moment.astimezone(ZoneInfo(self.zone)).date() if isinstance(moment, datetime) else moment

    def date(self, moment: datetime | date | None) -> str:
        """Return the day of *moment* in the report's zone, as prose writes it."""
        return self.say("unknown") if moment is None else format_date(self.day(moment), format="long", locale=self.lang)

    def moment(self, moment: datetime | None) -> str:
        """Return day, time and zone of *moment* in the report's zone."""
        if moment is None:
            return self.say("unknown")
        local = moment.astimezone(ZoneInfo(self.zone))
        return f"{self.date(moment)} {format_time(local, format='HH:mm', locale=self.lang)} {local.tzname()}"

    def _filled(self, sentence: str, values: dict[str, object]) -> str:
        try:
            return sentence % values
        except (KeyError, TypeError, ValueError) as problem:
            raise WordsError(
                "The sentence '%(sentence)s' cannot be filled in ('%(lang)s'): %(problem)s",
                sentence=sentence,
                lang=self.lang,
                problem=repr(problem),
            ) from problem


def load_words(folder: Path, lang: str, *, zone: str = "UTC", strict: bool = False) -> Words:
    """Return the words of *lang* from every FOLDER/LANG/LC_MESSAGES/*.po; English needs none.

    Strict words raise WordsError for a sentence without translation; others say it in English and note it in
    ``missing``. Raises WordsError for an unknown language or zone, and for a file that is no catalogue.
    """
    _check_language_and_zone(lang, zone)
    if lang == SOURCE_LANGUAGE:
        return Words(lang, zone, fingerprint=f"{lang} {zone}")
    paths = sorted((folder / lang / "LC_MESSAGES").glob("*.po"))
    if not paths:
        raise WordsError("No catalogue for the language '%(lang)s': %(folder)s has no .po file in %(lang)s/LC_MESSAGES",
                         lang=lang, folder=folder)  # fmt: skip
    last = _Fallback(lang, strict=strict)
    first, *others = [_read_catalogue(path, lang) for path in paths]
    for catalogue in (*others, last):
        first.add_fallback(catalogue)
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()
    return Words(lang, zone, first, last.missing, f"{lang} {zone} {digest}")


def _check_language_and_zone(lang: str, zone: str) -> None:
    try:
        Locale.parse(lang)
        ZoneInfo(zone)
    except (UnknownLocaleError, ValueError, ZoneInfoNotFoundError) as problem:
        raise WordsError("Unknown language or time zone: %(problem)s", problem=problem) from problem


def _read_catalogue(path: Path, lang: str) -> GNUTranslations:
    """Return one .po as gettext's own object, which knows the plural rule; fuzzy entries count as missing."""
    try:
        with path.open("rb") as file:
            catalogue = read_po(file, locale=lang, abort_invalid=True)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
    except (PoFileError, OSError, ValueError) as problem:
        raise WordsError("%(path)s is no gettext catalogue: %(problem)s", path=path, problem=problem) from problem
    compiled.seek(0)
    return GNUTranslations(compiled)

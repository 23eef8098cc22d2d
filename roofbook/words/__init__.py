"""What the product says, in one language: English is the source text, other languages are gettext catalogues."""

from roofbook.words.catalogue import SOURCE_LANGUAGE, Words, load_words, mark

__all__ = ["SOURCE_LANGUAGE", "Words", "load_words", "mark"]

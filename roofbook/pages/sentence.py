"""A page's answer: one sentence with its numbers, said plainly elsewhere and with strong numbers on its own page."""

from dataclasses import dataclass, field

from markupsafe import Markup

from roofbook.pages.escape import text
from roofbook.words import Words


@dataclass(frozen=True)
class Sentence:
    """A marked sentence (see ``words.mark``) and its values as they are written; the *strong* ones are its numbers."""

    message: str
    strong: dict[str, str] = field(default_factory=dict[str, str])
    others: dict[str, str] = field(default_factory=dict[str, str])

    def plain(self, words: Words) -> str:
        """Return the sentence as text."""
        return words.say(self.message, **self.strong, **self.others)

    def marked(self, words: Words) -> Markup:
        """Return the sentence as markup, its numbers strong."""
        values = {name: Markup("<strong>") + text(value) + Markup("</strong>") for name, value in self.strong.items()}
        return Markup(words.say(self.message, **values, **{name: text(value) for name, value in self.others.items()}))

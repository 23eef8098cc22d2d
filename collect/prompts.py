"""Prompts of a wanted length: varied words, and a nonce at the very front so that no cache has seen them.

The length is counted by the server, never by us: two short requests tell how many tokens it sees beside the words (its
template) and how many tokens a word takes; the warm-up of every cell corrects what is left. Prompts of as many words
have the same words in another order, so that they are equally long for any tokenizer that looks at words; and the words
are short English ones that are a single token in the usual vocabularies.
"""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Final

NONCE_WORDS: Final = 5
"""Words of a nonce. A prompt of 128 words has 128 x 127 x ... x 124 = 3.2e10 of them, and after the nonce the order
differs too: two prompts that share a front longer than a word or two do not happen."""

CALIBRATION_WORDS: Final = (24, 120)
"""Two lengths, far enough apart that a token more or less moves the result by one per cent only."""

# A difference beyond this is no matter of word lengths: the prompt was cut, or the count means something else.
_LARGEST_CORRECTION: Final = 0.10

_CLOSING: Final = "\n\nTell a very long story in which all of these words occur."

_TEXT: Final = """
development phone list idea image money rest knowledge leader winter product mouse education benefit right person
record effect salt color business state growth service behavior brush age friend care foot dog project hospital month
control worker north clock goal value pressure nature floor support lion problem agency industry example activity
station world water rule ability reason baby role future stone leg sense trade window test page side fund training
report family line technology member seed plant brother program week population star level bread artist minute term
song strategy bank door interest train work force subject day stock health top individual policy room change bill
issue relationship law point storm boat system data heart moment history rain glass hand region director animal table
music tower fruit parent site child nation market country company wall home west class film truth article field box
river character patient job voice source performance ground story land season city flower fact race gate horse air
castle snow plan choice success student orange mother body plate news question staff practice store time government
way church study light father number experience bridge scene type place thought spring price bird road sound event
condition energy view operation standard teacher party east tree figure son paper board form building position period
stage media college player center order difference doctor attention book school people office movement result hour
decision cup environment author farm sun moon computer ocean cost research organization rate street information oil
resource engine action hair arm summer iron area message dark community size degree sugar amount factor leaf night
face grass wheel wind loss path matter earth gold skill response name analysis bed house language answer south
material group movie art quality chair piece forest fish head culture eye root risk letter course space second mind
love plane life sign power picture car word year tax treatment wood deal apple cloud series rice ship town game design
section step team
"""
WORDS: Final = tuple(_TEXT.split())


@dataclass(frozen=True)
class Prompt:
    """One prompt: its *text* begins with its *nonce*; the same nonce and words give the same text again."""

    text: str
    nonce: str


@dataclass(frozen=True)
class Calibration:
    """How a server counts: tokens = *overhead_tokens* + words x *tokens_per_word*."""

    overhead_tokens: float = 0.0
    tokens_per_word: float = 1.0

    def words_for(self, tokens: int) -> int:
        """Return how many words make a prompt of *tokens*."""
        return max(NONCE_WORDS, round((tokens - self.overhead_tokens) / self.tokens_per_word))

    def corrected(self, words: int, *, wanted: int, counted: int) -> int:
        """Return how many words come nearer to *wanted*, after *words* of them were counted as *counted* tokens.

        A count far off is left alone: it shows a prompt that was cut, and more words would be cut again.
        """
        if abs(counted - wanted) > _LARGEST_CORRECTION * wanted:
            return words
        return max(NONCE_WORDS, words + round((wanted - counted) / self.tokens_per_word))


def calibrate(short: tuple[int, int], long: tuple[int, int]) -> Calibration:
    """Return how a server counts, from two requests as (words, tokens it counted)."""
    (few, few_tokens), (many, many_tokens) = short, long
    per_word = (many_tokens - few_tokens) / (many - few)
    if per_word <= 0:  # a server that counts nothing, or always the same
        return Calibration()
    return Calibration(few_tokens - few * per_word, per_word)


def make_prompt(words: int, source: random.Random, *, closing: bool) -> Prompt:
    """Return a new prompt of *words* words; *closing* adds the request for a long answer that a chat needs."""
    return prompt_of(" ".join(source.sample(_bag(words), NONCE_WORDS)), words, closing=closing)


def prompt_of(nonce: str, words: int, *, closing: bool) -> Prompt:
    """Return the prompt that *nonce* stands for: the order of its other words follows from it."""
    rest = Counter(_bag(words)) - Counter(nonce.split())
    filler = sorted(rest.elements())
    random.Random(nonce).shuffle(filler)
    return Prompt(" ".join([nonce, *filler]) + (_CLOSING if closing else ""), nonce)


def _bag(words: int) -> list[str]:
    """Return which words a prompt of *words* words has: all as often as they fit, then the first ones."""
    rounds, more = divmod(max(NONCE_WORDS, words), len(WORDS))
    return [*WORDS * rounds, *WORDS[:more]]

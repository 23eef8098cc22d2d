"""Prompts of a wanted length: varied words, and a nonce at the very front so that no cache has seen them.

The length is counted by the server, never by us: two short requests tell how many tokens it sees beside the words (its
template) and how many tokens a word takes; the warm-up of every cell corrects what is left. The words are short English
ones that are a single token in the usual vocabularies, so that two prompts of as many words are equally long.
"""

import random
from dataclasses import dataclass
from typing import Final

NONCE_WORDS: Final = 5
"""Words of a nonce: 322^5 nonces, so that among a million requests the chance of an equal pair is under one in six."""

CALIBRATION_WORDS: Final = (24, 120)
"""Two lengths, far enough apart that a token more or less moves the result by one per cent only."""

# A difference beyond this is no matter of word lengths: the prompt was cut, or the count means something else.
_LARGEST_CORRECTION: Final = 0.10

_CLOSING: Final = "\n\nTell a very long story in which all of these words occur."

_TEXT: Final = """
time year people way day life child world school state family student group country problem hand place week company
system program question work government number night point home water room mother area money story fact month right
study book eye job word business issue side head house service friend father power hour game line member law car
city community name team minute idea body information parent face level office door health person art history party
result change reason research moment air teacher force education foot age policy music market sense nation plan
college interest experience effect class control care field development role rate heart leader light voice mind
price report decision son view relationship town road arm difference value building action season tax director
position player record paper space ground form event matter center site project activity star table oil cost
industry figure street image phone data picture practice piece land product doctor wall patient worker news test
movie north love support technology step baby computer type attention film tree source organization hair window
culture brother energy period course summer plant term letter condition choice rule south floor material population
hospital church risk future bank west board subject rest behavior performance top goal second bed order author
agency nature color store sound movement page race series language response animal factor article east artist scene
stock treatment size dog fund media sign thought list individual quality pressure answer resource success cup amount
ability staff character growth loss degree region box training trade deal standard bill message analysis benefit
section glass skill operation stage design knowledge station strategy truth song example environment leg dark rain
river ocean forest bridge winter spring bread apple orange sugar salt rice fish bird horse mouse lion snow wind
storm cloud sun moon earth stone iron gold wood brush plate chair clock tower castle ship boat train plane wheel
engine path gate farm grass leaf root seed flower fruit
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
    nonce = " ".join(source.choices(WORDS, k=NONCE_WORDS))
    return prompt_of(nonce, words, closing=closing)


def prompt_of(nonce: str, words: int, *, closing: bool) -> Prompt:
    """Return the prompt that *nonce* stands for: its words follow from it."""
    filler = random.Random(nonce).choices(WORDS, k=max(0, words - NONCE_WORDS))
    return Prompt(" ".join([nonce, *filler]) + (_CLOSING if closing else ""), nonce)

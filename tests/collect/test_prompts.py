"""Prompts have the wanted length by the server's own count, and no two have a front in common."""

import random
from itertools import combinations

import pytest

from collect.oracle import tokenize
from collect.prompts import NONCE_WORDS, WORDS, Calibration, calibrate, make_prompt, prompt_of


def common_front(one: str, other: str) -> int:
    """How many characters two texts share in front."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def test_b01_prompts_share_no_front_and_are_equally_long() -> None:
    """B01: 12 prompts of one length: pairwise fewer than 16 common characters in front, token counts within 2."""
    source = random.Random(1)
    texts = [make_prompt(390, source, closing=False).text for _ in range(12)]
    assert max(common_front(*pair) for pair in combinations(texts, 2)) < 16
    counts = [len(tokenize(text)) for text in texts]
    assert max(counts) - min(counts) <= 2


def test_the_nonce_is_the_very_front_and_gives_the_prompt_again() -> None:
    """A row keeps the nonce only: with the number of words it is the whole prompt."""
    prompt = make_prompt(500, random.Random(2), closing=True)
    assert prompt.text.startswith(prompt.nonce + " ")
    assert len(prompt.nonce.split()) == NONCE_WORDS
    assert prompt_of(prompt.nonce, 500, closing=True) == prompt


@pytest.mark.parametrize("words", [5, 24, 322, 323, 2000])
def test_a_prompt_has_as_many_words_as_it_is_told(words: int) -> None:
    """Words are varied: none comes more often than the length of the list demands."""
    said = make_prompt(words, random.Random(3), closing=False).text.split()
    assert len(said) == words
    assert max(said.count(word) for word in set(said)) == -(-words // len(WORDS))


def test_two_short_requests_tell_template_and_tokens_a_word() -> None:
    """24 words counted as 48 and 120 words as 168: 1.25 tokens a word, 18 around them; 1,018 tokens are 800 words."""
    calibration = calibrate((24, 48), (120, 168))
    assert calibration == Calibration(overhead_tokens=18, tokens_per_word=1.25)
    assert calibration.words_for(1018) == 800
    assert calibrate((24, 7), (120, 7)) == Calibration(0, 1)  # a server that always counts the same tells nothing


def test_a_warm_up_corrects_a_length_but_not_a_cut_prompt() -> None:
    """1,018 wanted, 1,038 counted: 16 words fewer. 2,050 of 4,056 is a prompt cut in half: left as it is."""
    calibration = Calibration(18, 1.25)
    assert calibration.corrected(800, wanted=1018, counted=1038) == 784
    assert calibration.corrected(3000, wanted=4056, counted=2050) == 3000

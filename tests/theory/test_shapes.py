"""Ranges, and the nouns that carry them."""

import math

import pytest

from roofbook.theory.shapes import Layer, Model, Range


def test_ranges_add_end_to_end_and_subtract_crosswise() -> None:
    """What is left is least where most is taken."""
    assert Range(1, 2) + Range(10, 20) == Range(11, 22)
    assert Range(10, 20) - Range(1, 2) == Range(8, 19)
    assert Range(1, 2) + 1 == Range(2, 3)
    assert Range(1, 2) * -3 == Range(-6, -3)


def test_nothing_of_an_open_range_is_nothing() -> None:
    """Not the nan that infinity times zero would be."""
    assert Range(0, math.inf) * 0 == Range(0, 0)


def test_a_range_has_its_ends_in_order() -> None:
    """A range that is turned round is a mistake, not a range."""
    with pytest.raises(ValueError, match="from 2 to 1"):
        Range(2, 1)


def test_a_known_quantity_is_a_range_of_one_number() -> None:
    """3 is known, 3 to 4 is not."""
    assert Range.of(3).known
    assert not Range(3, 4).known


def test_layers_are_counted_by_kind() -> None:
    """Unknown layers are not zero layers."""
    assert Model("m").count("local") is None
    assert Model("m", layers=(Layer("local"), Layer(), Layer())).count("global") == 2

"""How much of the memory the GPU may use."""

from dataclasses import replace

import pytest

from roofbook.errors import EstimateError
from roofbook.theory.limits import Limit, gpu_limit
from roofbook.theory.shapes import Machine, MacLimit, Range
from roofbook.units import GIB, MB, MIB

# llama.cpp logs under MTLGPUFamilyMetal4: 32 GB 26,800.60 MB, 48 GB 40,200.90 MB
SEEN = (MacLimit(26, 32 * GIB, 26_800_600_000), MacLimit(26, 48 * GIB, 40_200_900_000))


def test_a_32_gb_mac_by_system_version(m4: Machine) -> None:
    """21,845.33 MiB (two thirds) up to macOS 15, 24.96 GiB as seen under macOS 26."""
    old, new = gpu_limit(m4, 15, SEEN), gpu_limit(m4, 26, SEEN)
    assert (round(old.limit_bytes.low / MIB, 2), old.basis) == (21_845.33, "rule")
    assert (round(new.limit_bytes.low / GIB, 2), new.basis) == (24.96, "observed")
    assert old.estimated
    assert new.estimated


def test_an_unknown_system_gives_the_range_over_both(m4: Machine) -> None:
    """Nobody said which macOS: 21,845.33 MiB to 26,800.60 MB."""
    found = gpu_limit(m4, None, SEEN)
    assert found.limit_bytes == Range(32 * GIB * 2 / 3, 26_800_600_000)


def test_b27_an_estimate_when_the_system_was_not_asked(m4: Machine) -> None:
    """Memory 34359738368, wired limit 0, Metal absent: an estimate of 21.33 GiB by the rule of two thirds, never 0."""
    found = gpu_limit(replace(m4, memory_bytes=34_359_738_368, wired_limit_mib=0))
    assert round(found.limit_bytes.low / GIB, 2) == 21.33
    assert found.estimated


def test_b27_a_wired_limit_is_in_mib(m4: Machine) -> None:
    """iogpu.wired_limit_mb 26000: 26,000 MiB, 25.39 GiB."""
    found = gpu_limit(replace(m4, wired_limit_mib=26_000))
    assert found == Limit(Range.of(26_000 * MIB), "wired_limit")
    assert round(found.limit_bytes.low / GIB, 2) == 25.39
    assert not found.estimated


def test_b27_what_metal_reports_comes_before_any_rule(m4: Machine) -> None:
    """A 36 GB machine whose log says 28991.03 MB: 27.00 GiB, where two thirds would give 24.0."""
    mac = replace(m4, memory_bytes=38_654_705_664, wired_limit_mib=0, gpu_limit_bytes=round(28_991.03 * MB))
    found = gpu_limit(mac)
    assert (round(found.limit_bytes.low / GIB, 2), found.basis, found.estimated) == (27.00, "reported", False)


@pytest.mark.parametrize(("gib", "mib"), [(16, 10_922.67), (36, 27_648), (96, 73_728)])
def test_older_logs_agree_with_the_fractions(m4: Machine, gib: int, mib: float) -> None:
    """Metal's logs: 16 GB 10,922.67 MiB, 36 GB 27,648 MiB, 96 GB 73,728 MiB."""
    found = gpu_limit(replace(m4, memory_bytes=gib * GIB), 15)
    assert round(found.limit_bytes.low / MIB, 2) == mib


def test_a_size_nobody_saw_lies_between_its_neighbours(m4: Machine) -> None:
    """36 GB under macOS 26: between the shares seen at 32 and 48 GB, and called a rule."""
    found = gpu_limit(replace(m4, memory_bytes=36 * GIB), 26, SEEN)
    ends = (36 / 32 * 26_800_600_000, 36 / 48 * 40_200_900_000)
    assert found.limit_bytes.low == pytest.approx(min(ends))
    assert found.limit_bytes.high == pytest.approx(max(ends))
    assert found.basis == "rule"


def test_a_graphics_card_has_all_of_its_memory(rtx_4060_ti: Machine) -> None:
    """8 GiB, the chip's own where the machine states none."""
    assert gpu_limit(rtx_4060_ti) == Limit(Range.of(8 * GIB), "memory")


def test_no_memory_no_limit() -> None:
    """A machine of which nobody knows the memory."""
    with pytest.raises(EstimateError, match="memory limit of box: memory_bytes is missing"):
        gpu_limit(Machine("box"))


def test_a_new_system_of_which_nothing_was_seen(m4: Machine) -> None:
    """The rule of older systems is not stretched over newer ones."""
    with pytest.raises(EstimateError, match="no Mac under it is in the facts"):
        gpu_limit(m4, 26)

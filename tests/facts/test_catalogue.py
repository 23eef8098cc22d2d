"""The shipped catalogue: what it says, who says so, and how a name finds its entry."""

import pytest

from roofbook.errors import UsageError
from roofbook.facts import Facts, Provenance
from roofbook.facts.models import ModelFact
from roofbook.theory.shapes import Ceilings, Chip, MacLimit, Peaks, Range, Spread, Tensors
from roofbook.units import GB, GIB, MB, TFLOP


def test_the_m4_is_read_with_its_dispute_its_measurements_and_its_sources(facts: Facts) -> None:
    """120 GB/s from Apple; FP32 published as 3.76 and as 4.6, so a range; 100 GB/s and 2.9 TFLOPS measured."""
    fact = facts.chips["apple-m4"]
    assert fact.chip == Chip(
        id="apple-m4",
        name="Apple M4 (10-core GPU)",
        vendor="apple",
        memory_kind="unified",
        memory_bytes=None,
        bandwidth_bytes_per_s=Range.of(120 * GB),
        peaks=Peaks(fp32=Range(3.76 * TFLOP, 4.6 * TFLOP)),
        measured=Ceilings(
            bandwidth_bytes_per_s=Spread(100 * GB, 100 * GB, 100 * GB),
            flops_per_s=Spread(2.9 * TFLOP, 2.9 * TFLOP, 2.9 * TFLOP),
            measured_on="gpu",
            source="arXiv 2502.05317, abstract: GPU STREAM up to 100 GB/s, GEMM up to 2.9 FP32 TFLOPS",
        ),
    )
    assert fact.memory_gib == (16, 24, 32)
    assert fact.provenance.of("bandwidth_gb_s").startswith("support.apple.com/en-sg/121555")
    assert "hmc-tech.com" in fact.provenance.of("fp32_tflops")
    assert fact.provenance.unverified == ("fp32_tflops",)


def test_an_rtx_4060_ti_has_the_rates_of_the_geforce_rule(facts: Facts) -> None:
    """22.06 TFLOPS of FP32: FP16 is 2 x (44.1) with FP32 accumulation, 4 x (88.2) with FP16, INT8 8 x (176.5)."""
    fact = facts.chips["nvidia-rtx-4060-ti-8gb"]
    tflops = {"fp32": 22.06, "fp16": 44.1, "fp16_acc16": 88.2, "int8": 176.5}
    assert fact.chip.peaks == Peaks(**{name: Range.of(value * TFLOP) for name, value in tflops.items()})
    assert fact.chip.memory_bytes == 8 * GIB
    assert fact.provenance.unverified == ("fp16_tflops", "int8_tops")


@pytest.mark.parametrize(
    ("chip", "low", "high"),
    [
        ("nvidia-rtx-pro-6000-blackwell", 251.9, 467.8),
        ("amd-mi300x", 1307.4, 2614.9),
        ("nvidia-dgx-spark-gb10", 62.5, 125),
    ],
)
def test_a_disputed_peak_is_a_range(facts: Facts, chip: str, low: float, high: float) -> None:
    """The two ends are what two sources print."""
    assert facts.chips[chip].chip.peaks.fp16 == Range(low * TFLOP, high * TFLOP)


def test_cpus_stand_beside_the_gpus_by_their_memory(facts: Facts) -> None:
    """Two channels of DDR5-5600: 2 x 5600 x 8 bytes = 89.6 GB/s."""
    chip = facts.chips["ddr5-5600-2ch"].chip
    assert (chip.memory_kind, chip.bandwidth_bytes_per_s) == ("cpu", Range.of(89.6 * GB))
    assert sum(one.chip.memory_kind == "cpu" for one in facts.chips.values()) == 15


@pytest.mark.parametrize(
    ("machine", "sizes"),
    [
        ("mac-mini-m4-32gb", (16, 24, 32)),
        ("mac-mini-m4-pro-16-24gb", (24, 48, 64)),
        ("mac-mini-m4-pro-20-64gb", (24, 48, 64)),
    ],
)
def test_a_mini_says_which_sizes_it_is_sold_with(facts: Facts, machine: str, sizes: tuple[int, ...]) -> None:
    """support.apple.com/en-sg/121555; a 32 GB mini is never an M4 Pro."""
    fact = facts.machine(machine)
    assert fact.sold_with_gib == sizes
    assert fact.machine.memory_bytes == int(machine.rpartition("-")[2].removesuffix("gb")) * GIB


def test_an_idle_power_without_a_source_is_unknown(facts: Facts) -> None:
    """4 to 6 W were measured for the M4 mini; for the desktop nobody was found who measured."""
    assert facts.machine("mac-mini-m4-32gb").idle_power_w == Range(4, 6)
    assert facts.machine("desktop-rtx-4060-ti-8gb").idle_power_w is None
    stated = [fact for fact in facts.machines.values() if fact.idle_power_w is not None]
    assert all("idle_power_w" in fact.provenance.sources for fact in stated)


def test_a_discrete_cards_id_is_a_machine_with_that_card(facts: Facts) -> None:
    """What else is in the box does not matter to memory and speed."""
    fact = facts.machine("nvidia-rtx-4090")
    assert (fact.machine.chip, fact.machine.memory_bytes) == (facts.chips["nvidia-rtx-4090"].chip, 24 * GIB)


def test_the_limits_of_a_32_gb_mac_are_those_of_the_logs(facts: Facts) -> None:
    """21,845.34 MiB up to macOS 15 (Metal's log); 26,800.60 MB, or 24.96 GiB, under macOS 26."""
    limits = [one for one in facts.mac_limits if one.memory_bytes == 32 * GIB]
    assert [(one.macos, one.limit_bytes) for one in limits] == [(15, round(21845.34 * 2**20)), (26, 26_800_600_000)]
    assert limits[1].limit_bytes / GIB == pytest.approx(24.96, abs=0.005)
    assert limits[0].limit_bytes == pytest.approx(22906.50 * MB, rel=1e-6)
    assert all(isinstance(one, MacLimit) and one.source for one in facts.mac_limits)


@pytest.mark.parametrize(
    ("runtime", "accelerator", "how"),
    [
        ("ollama", "metal", "native"),
        ("llama.cpp", "rocm", "native"),
        ("mlx-lm", "metal", "native"),
        ("vllm", "metal", "plugin"),
        ("vllm", "cuda", "native"),
        ("sglang", "metal", "source"),
        ("tensorrt-llm", "metal", "none"),
        ("tensorrt-llm", "cuda", "native"),
        ("triton", "metal", "none"),
        ("lm-studio", "metal", "native"),
    ],
)
def test_what_runs_on_what(facts: Facts, runtime: str, accelerator: str, how: str) -> None:
    """As the runtimes' own documents said on the day that stands beside it."""
    fact = facts.runtime(runtime)
    assert fact.runs[accelerator] == how
    assert fact.seen.startswith("2026")


def provenances(facts: Facts) -> list[tuple[str, Provenance]]:
    entries = [*facts.chips.items(), *facts.machines.items(), *facts.models.items(), *facts.runtimes.items()]
    return [(name, entry.provenance) for name, entry in entries]


def test_what_somebody_only_remembers_is_marked_unverified(facts: Facts) -> None:
    """A source that says "recalled" leaves something unchecked, and the entry names it."""
    recalled = [
        (name, one) for name, one in provenances(facts) if "recalled" in " ".join([one.source, *one.sources.values()])
    ]
    assert len(recalled) > 30
    assert [name for name, one in recalled if not one.unverified] == []


def qwen(facts: Facts) -> ModelFact:
    return facts.models["qwen2.5-7b"]


def test_a_digest_is_stronger_than_a_name(facts: Facts) -> None:
    """The digest of qwen2.5:7b means that file, whatever somebody calls it."""
    found = facts.find(names=["llama3.1:8b"], digests=["845dbda0ea48"])
    assert found is not None
    assert (found.model, found.by) == (qwen(facts), "digest")
    assert found.file is not None
    assert found.file.quantization == "Q4_K_M"


@pytest.mark.parametrize(
    ("name", "quantization"),
    [
        ("qwen2.5:7b", "Q4_K_M"),
        ("qwen2.5:7b-instruct-q4_K_M", "Q4_K_M"),
        ("QWEN2.5:7B-INSTRUCT-Q4_K_M", "Q4_K_M"),
        ("qwen2.5:7b-instruct-q8_0", "Q8_0"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("qwen2.5-7b", None),
    ],
)
def test_a_listed_name_means_one_file(facts: Facts, name: str, quantization: str | None) -> None:
    """A tag names a quantization; a repository's or the catalogue's own name none."""
    found = facts.model(name)
    assert found.model == qwen(facts)
    assert (None if found.file is None else found.file.quantization) == quantization


@pytest.mark.parametrize("name", ["qwen2.5:7b-instruct-q5_K_M", "qwen2.5-7b-instruct", "my-qwen2.5:7b", "qwen", ""])
def test_a_name_that_is_only_like_a_listed_one_means_nothing(facts: Facts, name: str) -> None:
    """No guess from likeness, and none from a part of a name."""
    assert facts.find(names=[name]) is None


@pytest.mark.parametrize("digest", ["845dbda0", "845dbda0ea49", "", "sha256:"])
def test_too_few_digits_or_others_are_no_digest(facts: Facts, digest: str) -> None:
    """Twelve digits is what servers print; fewer could be anything."""
    assert facts.find(digests=[digest]) is None


def test_an_unknown_model_names_the_near_ones(facts: Facts) -> None:
    """The typing mistake of one letter is among them."""
    with pytest.raises(UsageError, match=r"The model 'qwen2\.5-7' is not in the catalogue\. Near ones: .*qwen2\.5-7b"):
        facts.model("qwen2.5-7")


def test_an_unknown_machine_names_those_that_hold_the_word(facts: Facts) -> None:
    """Who types m4 wants to see the M4 machines."""
    with pytest.raises(UsageError, match=r"Near ones: mac-mini-m4-16gb, mac-mini-m4-24gb, mac-mini-m4-32gb"):
        facts.machine("m4")


def test_a_chip_with_several_sizes_is_no_machine(facts: Facts) -> None:
    """The message lists the machines that have it."""
    with pytest.raises(UsageError, match=r"'apple-m4' is a chip, .*mac-mini-m4-32gb"):
        facts.machine("apple-m4")


def test_a_files_total_tells_its_parts_where_the_rules_give_that_total(facts: Facts) -> None:
    """Qwen2.5-7B Q4_K_M: the rules give the file's 4,677,120,000 bytes, hence its token_embd too (292.36 MiB)."""
    # 152,064 rows of 3,584 values in blocks of 256 of 144 bytes: 152064 x 14 x 144 = 306,561,024
    assert qwen(facts).quantized("Q4_K_M").tensors == Tensors(
        quantization="Q4_K_M",
        total_bytes=4_677_120_000,
        embedding_bytes=306_561_024,
        file_bytes=4_683_073_952,
        device_bytes=round(4168.09 * 2**20),
    )
    assert qwen(facts).quantized("Q5_K_M").tensors == Tensors(quantization="Q5_K_M")

"""Published speeds: read as they were printed, and doubted exactly where they are impossible."""

from collections import Counter

from roofbook.facts import Facts, PublishedRun


def by_id(facts: Facts) -> dict[str, PublishedRun]:
    return {run.id: run for run in facts.published}


def test_every_published_row_is_read(facts: Facts) -> None:
    """556 rows on 63 catalogued chips and more; those read in a copy say so."""
    runs = facts.published
    assert len(runs) == 556
    assert len({run.chip.id for run in runs if run.chip is not None}) == 63
    # in a copy: 83 rows of llama.cpp's discussion 4167, 38 of 15396, 30 of 15013, 8 of 10879, 6 of 15021, 2 of 16578
    assert Counter(run.read_in_copy for run in runs) == {False: 556 - 167, True: 167}


def test_a_row_inherits_what_stands_for_its_group(facts: Facts) -> None:
    """LLaMA 3/Gaming GPUs/3070_v3.ipynb: pp512 2402.51 +- 11.82, tg512 72.79 +- 0.13."""
    run = by_id(facts)["xd-rtx-3070-8gb-8b-q4km-512"]
    assert run == PublishedRun(
        id="xd-rtx-3070-8gb-8b-q4km-512",
        source="XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e: LLaMA 3/Gaming GPUs/3070_v3.ipynb",
        read_in_copy=False,
        machine="RTX 3070 8GB",
        model="Llama 3 8B",
        runtime="llama.cpp llama-bench",
        build="4426e298 (2824)",
        backend="CUDA",
        date="2024-05",
        quantization="Q4_K_M",
        chip=facts.chips["nvidia-rtx-3070"].chip,
        shape=facts.models["llama-3.1-8b"].shape,
        memory_bytes=8 * 2**30,
        prompt_tokens=512,
        prefill_tok_per_s=2402.51,
        prefill_sd=11.82,
        output_tokens=512,
        decode_tok_per_s=72.79,
        decode_sd=0.13,
    )


def test_the_rules_find_every_impossible_decode_and_no_other(facts: Facts) -> None:
    """Six rows pass their chip's bandwidth: three web claims, a failed run, a wrong label, a copied figure."""
    found = {run.id for run in facts.published if run.decode_band == "impossible"}
    assert found == {run.id for run in facts.published if "decode_impossible" in run.flagged}
    assert len(found) == 6


def test_the_rules_find_every_impossible_prefill_and_no_other(facts: Facts) -> None:
    """One row passes its chip's arithmetic: the run that failed. INT8 on CUDA, above the FP16 peak, does not."""
    found = {run.id for run in facts.published if run.prefill_band == "impossible"}
    assert found == {run.id for run in facts.published if "prefill_impossible" in run.flagged}
    assert found == {"xd-m1-7-core-gpu-8gb-macbook-air-13-8b-q4km-8192"}
    above_fp16 = [run for run in facts.published if "prefill_above_fp16" in run.flagged]
    assert len(above_fp16) == 17
    assert {run.prefill_band for run in above_fp16} == {"ordinary"}


def test_no_believable_row_is_called_high(facts: Facts) -> None:
    """The highest believable decode share is 0.89."""
    assert [run.id for run in facts.published if "high" in (run.decode_band, run.prefill_band)] == []


def test_a_low_row_is_one_that_its_collector_found_slow(facts: Facts) -> None:
    """What the rules call low was flagged before; a low share that is ordinary on fast memory is not called so."""
    assert {run.id for run in facts.published if run.decode_band == "low"} <= {
        run.id for run in facts.published if "decode_slow" in run.flagged
    }
    assert {run.id for run in facts.published if run.prefill_band == "low"} == {
        run.id for run in facts.published if "prefill_slow" in run.flagged
    }
    assert {run.decode_band for run in facts.published if "decode_low_share" in run.flagged} == {"ordinary"}


def test_most_rows_can_be_held_against_their_chip(facts: Facts) -> None:
    """A rule that never applies finds nothing: of 556 rows at least 400 have a verdict of each kind."""
    assert sum(run.decode_band is not None for run in facts.published) > 450
    assert sum(run.prefill_band is not None for run in facts.published) > 400

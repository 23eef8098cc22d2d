"""How many words make a prompt of a wanted length on each model: what calibration and warm-ups have taught so far."""

from dataclasses import dataclass, field

from collect.prompts import Calibration


@dataclass
class Lengths:
    """Words by model and wanted tokens."""

    _calibrations: dict[str | None, Calibration] = field(default_factory=dict[str | None, Calibration])
    _words: dict[tuple[str | None, int], int] = field(default_factory=dict[tuple[str | None, int], int])

    def knows(self, model: str | None) -> bool:
        """Whether *model* was calibrated."""
        return model in self._calibrations

    def calibrated(self, model: str | None, calibration: Calibration) -> None:
        """Learn how *model* counts."""
        self._calibrations[model] = calibration

    def words(self, model: str | None, tokens: int) -> int:
        """Return how many words make a prompt of *tokens*."""
        known = self._words.get((model, tokens))
        return self._calibration(model).words_for(tokens) if known is None else known

    def counted(self, model: str | None, tokens: int, counted: int) -> None:
        """Learn that a prompt meant to have *tokens* had *counted*."""
        words = self.words(model, tokens)
        self._words[model, tokens] = self._calibration(model).corrected(words, wanted=tokens, counted=counted)

    def template_tokens(self, model: str | None) -> int:
        """Return about how many tokens stand around the words."""
        return max(0, round(self._calibration(model).overhead_tokens))

    def _calibration(self, model: str | None) -> Calibration:
        return self._calibrations.get(model, Calibration())

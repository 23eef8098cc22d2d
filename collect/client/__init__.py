"""The way to a server, and the only place that knows httpx: requests whose answers are stamped, and quick look-ups."""

from collect.client.lag import LoopWatch
from collect.client.sender import Sender, Target

__all__ = ["LoopWatch", "Sender", "Target"]

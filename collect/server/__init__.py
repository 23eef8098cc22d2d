"""Looking at the server that is about to be measured: what it is, what it runs, and how it was started."""

from collect.server.facts import Api, ListedModel, ServerFacts
from collect.server.look import chosen, inspect, is_here, of_engine
from collect.server.recognise import find, identify

__all__ = ["Api", "ListedModel", "ServerFacts", "chosen", "find", "identify", "inspect", "is_here", "of_engine"]

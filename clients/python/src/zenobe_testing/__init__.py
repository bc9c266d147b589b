"""A DynamoDB for tests: finds the `zenobe` binary, runs it on a free port, and gives every test an empty database.

With pytest the fixtures of `zenobe_testing.plugin` do all of it. `Server` alone serves any other framework.
"""

from .binary import BinaryError, find_binary
from .server import ControlError, Server, StartError

__all__ = ["BinaryError", "ControlError", "Server", "StartError", "find_binary"]

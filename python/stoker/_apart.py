# SPDX-License-Identifier: Apache-2.0
"""Calls a function of the library in a process of its own: one that runs commands takes all signals and waits for all children
of its process, which may have others."""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import types
from typing import Any


def call(function: str, **arguments: Any) -> dict[str, Any]:
    """The document that _core.FUNCTION(**arguments) returns; raises what it raises. What the command writes goes where our
    own output goes; it has no input. Ctrl-C, or anything else that is raised meanwhile, is passed on to it."""
    reads, writes = os.pipe()
    with open(reads, "rb") as answers:
        try:
            # In a session of its own: Ctrl-C in a terminal reaches the command once, through us.
            helper = subprocess.Popen(
                [sys.executable, "-I", __file__, str(writes), json.dumps({"function": function, "arguments": arguments})],
                pass_fds=[writes],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(writes)
        try:
            answer = answers.read()
            helper.wait()
        except BaseException:
            helper.send_signal(signal.SIGINT)
            helper.wait()
            raise
    if not answer:
        raise RuntimeError(f"the process that runs the command ended with status {helper.returncode}")
    return _taken(json.loads(answer))


def _taken(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" not in answer:
        document: dict[str, Any] = json.loads(answer["document"])
        return document
    from stoker import _errors

    name = answer["error"]
    kind: type[BaseException] = getattr(_errors if hasattr(_errors, name) else builtins, name, RuntimeError)
    raise kind(*answer["arguments"])


def _main() -> None:
    # The rest of the package, and NumPy with its threads, are not needed here.
    package = types.ModuleType("stoker")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["stoker"] = package
    from stoker import _core

    descriptor, request = int(sys.argv[1]), json.loads(sys.argv[2])
    os.set_inheritable(descriptor, False)
    try:
        answer = {"document": getattr(_core, request["function"])(**request["arguments"])}
    except (Exception, KeyboardInterrupt) as error:
        answer = {"error": type(error).__name__, "arguments": error.args}
    with open(descriptor, "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    _main()

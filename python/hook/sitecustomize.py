# SPDX-License-Identifier: Apache-2.0
# `stoker time` puts this directory first on PYTHONPATH: Python imports this file when it starts. It watches the frameworks' data
# iterators, then runs the sitecustomize that it stands in front of.
import os
import sys


def _run_the_next():
    here = os.path.dirname(os.path.abspath(__file__))
    import importlib.machinery

    path = [each for each in sys.path if os.path.abspath(each or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    import importlib.util

    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("STOKER_RUN"):
    try:
        import _stoker_hook

        _stoker_hook.install(os.environ["STOKER_RUN"])
    except Exception as error:  # a training that cannot be watched still trains
        if os.environ.get("STOKER_DEBUG"):
            sys.stderr.write(f"stoker: steps are not watched: {error!r}\n")
_run_the_next()

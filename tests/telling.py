"""A solver in a child process that tells what its process sees; a file of its own, which a child imports quickly."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings
from milpbn.solvers.support.child import ChildSolver


class Telling(ChildSolver):
    """It tells what its process sees, after it has done what the option ``do`` says."""

    name = "telling"
    prints_log = True
    #: Number of models in this process.
    models = 0

    def version(self) -> str:
        return "telling 1"

    def solve_here(self, milp: Milp, start: object, settings: Settings, events: MilpEvents) -> Outcome:
        task = settings.options.get("do")
        if milp.name == "tiny":  # not one of the models by which solvers are examined
            Telling.models += 1
        if task == "print":
            print("printed by the solver", flush=True)
        elif task == "die" or (task == "die when used" and Telling.models > 1):
            os.kill(os.getpid(), signal.SIGKILL)
        elif task == "raise":
            raise KeyError("inside")
        elif task == "hang":
            time.sleep(60)
        elif task == "leave a file":
            Path("left.txt").write_text("left")
        elif task == "wait":
            while not events.stopping():
                time.sleep(0.01)
        detail = f"{os.getpid()} {os.getcwd()} {os.environ.get('COLOUR')}"
        return Outcome(limit="user" if task == "wait" else None, detail=detail)

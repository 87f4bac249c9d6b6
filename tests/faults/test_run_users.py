# SPDX-License-Identifier: Apache-2.0
"""Runs, sweeps and job scripts where another user can write: nothing that user puts there is run as somebody else."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from stoker_program import Finished, clean_environment

NOBODY = 65534
VICTIM = 1

# Replaces what the victim makes in a directory, as soon as it is there, by one whose sitecustomize.py leaves a mark.
SWAP = """
import os, sys, time
watched, mark = sys.argv[1:]
before = set(os.listdir(watched))
print("ready", flush=True)
while True:
    for name in set(os.listdir(watched)) - before:
        path = os.path.join(watched, name)
        try:
            os.rename(path, path + ".taken")
        except OSError:
            continue
        before |= {name, name + ".taken"}
        for inner in ("", *(n for n in os.listdir(path + ".taken") if os.path.isdir(os.path.join(path + ".taken", n)))):
            hook = os.path.join(path, inner, "hook")
            os.makedirs(hook, exist_ok=True)
            with open(os.path.join(hook, "sitecustomize.py"), "w") as file:
                file.write(f"import os\\nopen({mark!r} + str(os.getuid()), 'w')\\n")
    time.sleep(0.005)
"""


@pytest.fixture
def victim(as_other_user):
    """Runs the program as uid 1, whose home directory is its own."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")
    home = as_other_user.directory / "home of 1"
    home.mkdir()
    os.chown(home, VICTIM, VICTIM)

    def run(*words, cwd: Path, status=0, env=None, umask=0o022) -> Finished:
        return Finished(
            subprocess.run(
                [as_other_user.program, *words],
                user=VICTIM,
                group=VICTIM,
                extra_groups=[],
                umask=umask,
                cwd=cwd,
                env={**clean_environment(home), **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=120,
            )
        ).require(status)

    run.home = home
    run.state = home / ".local/state/stoker"
    return run


@pytest.fixture
def attacker(as_other_user):
    """attacker(directory): from now on, nobody swaps what is made in there. Returns where a mark would be."""
    started = []
    marks = as_other_user.directory / "marks"
    marks.mkdir()
    marks.chmod(0o777)

    def attack(directory: Path) -> Path:
        words = ["/usr/bin/python3", "-c", SWAP, directory, f"{marks}/"]
        process = subprocess.Popen(words, user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return marks

    yield attack
    for process in started:
        process.kill()
        process.wait()


# The hook is there before the command is; Python starts when the attacker has had time.
SLOW = ["sh", "-c", "sleep 1; exec /usr/bin/python3 -c pass"]


def made_by(user: int, path: Path, mode: int) -> Path:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, user, user)
    return path


def runs_in(directory: Path) -> list[Path]:
    return [found.parent for found in directory.rglob("run.json")]


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o755])
def test_directory_of_runs_that_another_user_made(scratch, victim, attacker, mode):
    theirs = made_by(NOBODY, scratch / "stoker-runs", mode)
    marks = attacker(theirs)
    finished = victim("time", "--", *SLOW, cwd=scratch)
    assert list(marks.iterdir()) == []
    (run,) = runs_in(victim.state / "runs")
    assert f"the run is recorded in {run}: " in finished.stderr
    assert f"{theirs} belongs to nobody ({NOBODY})" in finished.stderr
    assert list(theirs.iterdir()) == []


def test_directory_in_which_everybody_renames(as_other_user, victim, attacker):
    """There is no stoker-runs yet, and whoever swaps the one that is made has the hook."""
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    marks = attacker(everybodys)
    finished = victim("time", "--", *SLOW, cwd=everybodys)
    assert list(marks.iterdir()) == [] and list(everybodys.iterdir()) == []
    assert len(runs_in(victim.state / "runs")) == 1
    assert f"{everybodys} is writable by everybody" in finished.stderr


def test_directory_below_one_of_another_user(as_other_user, victim):
    above = made_by(NOBODY, as_other_user.directory / "theirs", 0o755)
    own = made_by(VICTIM, above / "own", 0o755)
    finished = victim("time", "--", "true", cwd=own)
    assert f"{above} belongs to nobody" in finished.stderr
    assert list(own.iterdir()) == [] and len(runs_in(victim.state)) == 1


def test_group_whose_members_could_rename(as_other_user, victim):
    groups = made_by(VICTIM, as_other_user.directory / "groups", 0o775)
    os.chown(groups, VICTIM, NOBODY)
    finished = victim("time", "--", "true", cwd=groups)
    assert f"{groups} is writable by its group" in finished.stderr
    assert list(groups.iterdir()) == []
    # A group of the user's own name, without other members, is the user: Debian's default.
    os.chown(groups, VICTIM, VICTIM)
    assert "recorded in" not in victim("time", "--", "true", cwd=groups).stderr
    assert len(runs_in(groups / "stoker-runs")) == 1


def test_own_directory_that_others_may_write_to(as_other_user, victim, attacker):
    own = made_by(VICTIM, as_other_user.directory / "own", 0o755)
    open_to_all = made_by(VICTIM, own / "stoker-runs", 0o777)
    marks = attacker(open_to_all)
    finished = victim("time", "--", *SLOW, cwd=own)
    assert list(marks.iterdir()) == [] and list(open_to_all.iterdir()) == []
    assert f"{open_to_all} is writable by everybody" in finished.stderr


def test_link_that_another_user_made(scratch, victim):
    """It leads to a directory that would do."""
    fine = made_by(VICTIM, victim.home / "fine", 0o755)
    (scratch / "stoker-runs").symlink_to(fine)
    os.chown(scratch / "stoker-runs", NOBODY, NOBODY, follow_symlinks=False)
    victim("time", "--", "true", cwd=scratch)
    assert list(fine.iterdir()) == [] and len(runs_in(victim.state)) == 1


@pytest.mark.parametrize("umask", [0o022, 0, 0o077])
def test_sticky_directory_is_no_danger(scratch, victim, attacker, umask):
    marks = attacker(scratch)
    finished = victim("time", "--", *SLOW, cwd=scratch, umask=umask)
    assert list(marks.iterdir()) == [] and "recorded in" not in finished.stderr
    (run,) = runs_in(scratch / "stoker-runs")
    for path in (scratch / "stoker-runs", run, run / "hook"):
        assert path.stat().st_uid == VICTIM and not path.stat().st_mode & 0o022
    assert stat.S_IMODE((run / "hook").stat().st_mode) == 0o700


def test_run_that_is_named_in_an_unsafe_place(as_other_user, victim, attacker):
    """The user chose it, so it is recorded there; what Python imports is not."""
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    marks = attacker(everybodys)
    # The attacker may be fast enough to make the run fail.
    victim("time", "--run", everybodys / "run", "--", *SLOW, cwd=victim.home, status=None)
    assert list(marks.iterdir()) == []
    quiet = made_by(0, as_other_user.directory / "quiet", 0o777)
    finished = victim("time", "--run", quiet / "run", "--", "true", cwd=victim.home)
    (hook,) = victim.state.glob("hook-*")
    assert f"what Python imports to be measured is in {hook}: " in finished.stderr
    assert stat.S_IMODE(hook.stat().st_mode) == 0o700


def test_hook_still_works_from_there(as_other_user, victim):
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    show = "import _stoker_hook; print(_stoker_hook.__file__)"
    for run in ("one", "two"):
        finished = victim("time", "--run", everybodys / run, "--", "/usr/bin/python3", "-c", show, cwd=victim.home)
        assert finished.stdout.startswith(str(victim.state / "hook-"))


def test_state_directory_that_is_not_safe_either(as_other_user, victim):
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    environment = {"XDG_STATE_HOME": str(everybodys / "state")}
    finished = victim("time", "--", "touch", victim.home / "ran", cwd=everybodys, env=environment, status=1)
    assert "set XDG_STATE_HOME to a directory of your own" in finished.stderr
    assert not (victim.home / "ran").exists()


def test_named_run_without_a_safe_place_for_the_hook(as_other_user, victim, attacker):
    """The command runs, and the user is told what is not measured; Python imports nothing that others could replace."""
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    runs = made_by(0, as_other_user.directory / "runs", 0o777)
    show = "import os, sys; print(os.environ.get('PYTHONPATH'), '_stoker_hook' in sys.modules)"
    command = ["--", "/usr/bin/python3", "-c", show]
    # A state directory that was chosen, and a home that others write to, in a job of several nodes.
    for n, environment in enumerate(
        [
            {"XDG_STATE_HOME": str(everybodys / "state")},
            {"HOME": str(everybodys), "SLURM_JOB_NUM_NODES": "2"},
        ]
    ):
        finished = victim("time", "--run", runs / f"run-{n}", *command, cwd=victim.home, env=environment)
        assert finished.stdout.splitlines()[0] == "None False"
        assert "measured without the hook: steps and waiting for data are not measured" in finished.stderr
        assert f"{everybodys} is writable by everybody" in finished.stderr
        assert "set XDG_STATE_HOME to a directory of your own" in finished.stderr
        assert (runs / f"run-{n}" / "run.json").exists() and not (runs / f"run-{n}" / "hook").exists()


def test_jobs_need_a_directory_that_all_nodes_have(as_other_user, victim):
    """/tmp of another node may hold anything: a script there is never submitted again."""
    everybodys = made_by(0, as_other_user.directory / "everybodys", 0o777)
    line = ["time", "--slurm", "--print", "--", "true"]
    refused = victim(*line, cwd=everybodys, env={"HOME": str(everybodys)}, status=1)
    assert "set XDG_STATE_HOME to a directory of your own" in refused.stderr and refused.stdout == ""


def test_sweep(as_other_user, scratch, victim):
    theirs = made_by(NOBODY, scratch / "stoker-scale", 0o777)
    line = ["scale", "--threads", "1", "--repeat", "1"]
    finished = victim(*line, "--", "true", cwd=scratch)
    assert f"the runs are recorded in {victim.state / 'scale'}" in finished.stderr
    assert list(theirs.iterdir()) == [] and len(runs_in(victim.state / "scale")) == 1
    # Logs are overwritten in a sweep's directory, and a link leads anywhere.
    thesis = victim.home / "thesis.tex"
    thesis.write_text("years of work")
    os.chown(thesis, VICTIM, VICTIM)
    (theirs / "n1-r1.log").symlink_to(thesis)
    refused = victim(*line, "--output", theirs, "--", "true", cwd=victim.home, status=1)
    assert f"{theirs} belongs to nobody ({NOBODY})" in refused.stderr and thesis.read_text() == "years of work"


FAKE_SBATCH = """#!/bin/sh
for script; do :; done
echo "$script" > "$HOME/submitted"
echo 4711
"""


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_job_scripts(as_other_user, scratch, victim, mode):
    """What is given to sbatch, and what a job submits again, is nothing that another user wrote."""
    theirs = made_by(NOBODY, scratch / "stoker-jobs", mode)
    programs = as_other_user.directory / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(FAKE_SBATCH)
    (programs / "sbatch").chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    line = ["time", "--slurm", "--no-wait", "--", "true"]
    finished = victim(*line, cwd=scratch, env=environment, umask=0)
    script = Path((victim.home / "submitted").read_text().strip())
    assert script.parent.parent == victim.state / "jobs"
    assert f"{theirs} belongs to nobody ({NOBODY})" in finished.stderr and str(script.parent) in finished.stderr
    assert list(theirs.iterdir()) == []
    # With a umask of 0 scripts are writable by everybody who gets as far as that.
    assert stat.S_IMODE(script.parent.stat().st_mode) == 0o700
    shown = victim(*line[:2], "--print", "--", "true", cwd=scratch, env=environment)
    assert str(victim.state / "jobs") in shown.stdout and list(theirs.iterdir()) == []

# SPDX-License-Identifier: Apache-2.0
"""stoker job on a real Slurm: figures beside the kernel's and seff's formulas, every state, and what goes wrong."""

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest
import stoker
from slurm_cluster import NOBODY
from stoker_program import program

FOOTPRINT = Path(__file__).with_name("footprint.py")
# 30 for the whole proof: STOKER_FOOTPRINT_SECONDS=30 pytest tests/slurm/test_job.py -k known
SECONDS = int(os.environ.get("STOKER_FOOTPRINT_SECONDS", "12"))
EVIL = "a'b\"c;$(touch pwned)|`id`\x1f9\n1.batch\x1fCOMPLETED"


@pytest.fixture(scope="session")
def jobs(cluster):
    """Jobs of all kinds, submitted at once; the slow ones end while tests look at the others."""
    python = sys.executable
    het = cluster.shared / "het.sh"
    het.write_text(
        "#!/bin/bash\n#SBATCH -n1 --mem=200M --output=/dev/null\n#SBATCH hetjob\n#SBATCH -n2 --mem=300M\n"
        "srun --het-group=0,1 sleep 1\n"
    )
    made = {
        "known": cluster.submit(
            f"srun {python} {FOOTPRINT} 1500 2 {SECONDS} {cluster.shared}/truth.json", "-c4", "--mem=4G", "--time=60"
        ),
        "timeout": cluster.submit("sleep 300", "--time=1", "--mem=100M"),
        "memory": cluster.submit(f"srun {python} {FOOTPRINT} 900 1 20", "--mem=300M"),
        "memory of the script": cluster.submit(f"exec {python} {FOOTPRINT} 900 1 20", "--mem=300M"),
        "memory of a step": cluster.submit(f"srun {python} {FOOTPRINT} 900 1 20; true", "--mem=300M"),
        "as tasks": cluster.submit(f"{python} {FOOTPRINT} 50 1 11", "-n4", "--mem=300M", "--time=5"),
        "failed": cluster.submit("exit 3", "--mem=100M"),
        "cancelled": cluster.submit("sleep 300", "--mem=100M"),
        "running": cluster.submit(f"srun {python} {FOOTPRINT} 100 1 60", "--mem=400M", "-c2"),
        "held": cluster.submit("true", "--hold"),
        "array": cluster.submit("sleep $SLURM_ARRAY_TASK_ID", "--array=1-3", "--mem=100M"),
        "evil": cluster.submit("sleep 1", f"--job-name={EVIL}", "--mem=100M"),
        "theirs": cluster.submit("sleep 1", "--mem=100M", user=NOBODY),
        "nodes": cluster.submit(f"srun {python} {FOOTPRINT} 150 1 11", "-N2", "-n4", "-c2", "--mem=2G", "--time=60"),
        "het": int(cluster.run("sbatch", "--parsable", het).stdout),
    }
    cluster.wait(made["cancelled"], "RUNNING")
    cluster.run("scancel", made["cancelled"])
    return made


def seff(cluster, job) -> tuple[float, float]:
    """CPU and memory efficiency as seff (since 24.11) computes them, from what sacct says."""

    def seconds(text: str) -> float:
        days, _, clock = text.rpartition("-")
        parts = [float(part) for part in clock.split(":")]
        return int(days or 0) * 86400 + sum(part * 60**place for place, part in enumerate(reversed(parts)))

    columns = "JobID,ElapsedRaw,AllocCPUS,TotalCPU,AllocTRES,TRESUsageInTot"
    lines = cluster.run("sacct", "-nP", "--noconvert", "-j", job, "-o", columns).stdout.splitlines()
    rows = [line.split("|") for line in lines]
    whole = next(row for row in rows if "." not in row[0])
    steps = [row for row in rows if "." in row[0]]
    granted = float(re.search(r"mem=(\d+)M", whole[4])[1]) * 2**20
    peaks = [float(found[1]) for row in steps if (found := re.search(r"\bmem=(\d+)", row[5]))]
    return sum(seconds(row[3]) for row in steps) / (int(whole[1]) * int(whole[2])), max(peaks) / granted


def accepted(cluster, lines: list[str]) -> None:
    script = cluster.shared / "advice.sh"
    script.write_text("#!/bin/bash\n" + "\n".join(lines) + "\ntrue\n")
    cluster.run("sbatch", "--test-only", script)


def test_known_footprint(cluster, jobs):
    assert cluster.wait(jobs["known"]) == "COMPLETED"
    document = cluster.stoker("job", str(jobs["known"]), "--json").json
    truth = json.loads((cluster.shared / "truth.json").read_text())
    used, efficiency = document["used"], document["efficiency"]
    assert used["cpu_s"] == pytest.approx(truth["cpu_s"], rel=0.03)
    assert used["memory_bytes"] == pytest.approx(truth["memory"], rel=0.03)
    assert used["memory_bytes"] == pytest.approx(1.5e9, rel=0.03)
    # Slurm counts whole seconds, from before the process is there until after it has gone.
    assert truth["seconds"] - 1 <= used["seconds"] <= truth["seconds"] + 3
    assert efficiency["cpu"] == pytest.approx(truth["cpu_s"] / (4 * used["seconds"]), rel=0.03)
    assert (efficiency["cpu"], efficiency["memory"]) == pytest.approx(seff(cluster, jobs["known"]), rel=1e-9)
    assert document["asked"] == {"nodes": 1, "cores": 4, "memory_bytes": 4 << 30, "gpus": None, "seconds": 3600}
    assert [step["step"] for step in document["steps"]] == ["batch", "0"]
    lines = [finding["line"] for finding in document["findings"]]
    assert "#SBATCH --mem=3G" in lines
    assert "#SBATCH --time=00:05:00" in lines
    assert re.search(r"--ntasks=1 --cpus-per-task=[12]\b", " ".join(lines))
    accepted(cluster, lines)


def test_text_has_the_lines(cluster, jobs):
    cluster.wait(jobs["known"])
    text = cluster.stoker("job", str(jobs["known"])).stdout
    assert "COMPLETED: it ended well" in text
    assert re.search(r"asked 4 GiB, peak 1\.4\d GiB\n  #SBATCH --mem=3G\n", text)


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("failed", "FAILED", "exit status 3"),
        ("cancelled", "CANCELLED", "CANCELLED: it was cancelled by root (0)"),
        ("theirs", "COMPLETED", "of nobody"),
        ("held", "PENDING", "held by its user"),
    ],
)
def test_states(cluster, jobs, name, state, words):
    cluster.wait(jobs[name], state)
    document = cluster.stoker("job", str(jobs[name]), "--json").json
    assert document["state"] == state
    text = cluster.stoker("job", str(jobs[name])).stdout
    assert words in text


def test_running(cluster, jobs):
    cluster.wait(jobs["running"], "RUNNING")
    end = time.monotonic() + 60
    while True:
        document = cluster.stoker("job", str(jobs["running"]), "--json").json
        if (document["used"]["memory_bytes"] or 0) > 90e6 and (document["used"]["cpu_s"] or 0) > 1:
            break
        assert time.monotonic() < end, document
        time.sleep(1)
    assert document["state"] == "RUNNING"
    assert document["ended"] is None


def test_running_job_gets_no_final_advice(cluster):
    job = cluster.submit(f"srun {sys.executable} {FOOTPRINT} 100 1 60", "--mem=4G", "-c4", "--time=60")
    cluster.wait(job, "RUNNING")
    end = time.monotonic() + 60
    while not (findings := cluster.stoker("job", str(job), "--json").json["findings"]):
        assert time.monotonic() < end
        time.sleep(1)
    assert all(finding["what"].endswith(" so far") and finding["line"] is None for finding in findings), findings
    text = cluster.stoker("job", str(job)).stdout
    assert "#SBATCH" not in text and "used so far" in text
    cluster.run("scancel", job)


def test_who_cancelled_it(cluster):
    job = cluster.submit("sleep 300", "--mem=100M", user=NOBODY)
    cluster.wait(job, "RUNNING")
    cluster.run("scancel", job, user=NOBODY)
    cluster.wait(job, "CANCELLED")
    assert cluster.stoker("job", str(job), "--json").json["cancelled_by"] == {"uid": NOBODY, "user": "nobody"}
    assert f"was cancelled by nobody ({NOBODY})" in cluster.stoker("job", str(job)).stdout


@pytest.mark.parametrize("forgotten", [False, True])
def test_memory_asked_for_per_core(cluster, forgotten):
    """sbatch refuses --mem where the script has --mem-per-cpu: the line is one that it takes in that script."""
    script = cluster.shared / "per-core.sh"
    line = "#SBATCH -c4 --mem-per-cpu=500M --output=/dev/null"
    script.write_text(f"#!/bin/bash\n{line}\nsrun {sys.executable} {FOOTPRINT} 100 1 11\n")
    submitted = ["sbatch", "--parsable", *(["--mem-per-cpu=500M"] if forgotten else []), script]
    job = int(cluster.run(*submitted).stdout)
    assert cluster.wait(job) == "COMPLETED"
    # The controller forgets a job some minutes after its end; what then is left is the command line.
    hidden = cluster.shared / "no-scontrol"
    hidden.mkdir(exist_ok=True)
    (hidden / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    (hidden / "scontrol").chmod(0o755)
    environment = {"PATH": f"{hidden}:{os.environ['PATH']}"} if forgotten else None
    document = cluster.stoker("job", str(job), "--json", env=environment).json
    lines = [finding["line"] for finding in document["findings"] if finding["line"]]
    (wanted,) = {each for each in lines if "--mem" in each}
    assert re.fullmatch(r"#SBATCH (--ntasks=1 --cpus-per-task=\d )?--mem-per-cpu=\d+M", wanted)
    assert not any("--mem=" in each for each in lines)
    for each in lines:
        accepted(cluster, [line, each])
    accepted(cluster, [line, *lines])
    with pytest.raises(AssertionError, match="mutually exclusive"):
        accepted(cluster, [line, "#SBATCH --mem=1G"])


def test_array_that_waits(cluster):
    """Ten tasks are one row of sacct; their name is one, and so is the directory they were submitted from."""
    job = cluster.submit("true", "--array=1-10", "--hold", "--job-name=ten of them", "--mem=100M")
    text = cluster.stoker("job", str(job)).stdout
    assert f"job {job} 'ten of them' of root, partition test: an array of 10 tasks\n" in text
    document = cluster.stoker("job", str(job), "--json").json
    assert [part["id"] for part in document["parts"]] == [f"{job}_{task}" for task in range(1, 11)]
    assert {part["state"] for part in document["parts"]} == {"PENDING"} and document["name"] == "ten of them"
    one = cluster.stoker("job", f"{job}_7", "--json").json
    assert (one["kind"], one["id"], one["asked"]["memory_bytes"]) == ("job", f"{job}_7", 100 << 20)
    listed = [each["id"] for each in cluster.stoker("job", "--json").json["jobs"]]
    assert len([each for each in listed if each.startswith(f"{job}_")]) == 1
    cluster.run("scancel", job)


def test_name_is_said_once(cluster, jobs):
    """The number of an array is that of its last task, that of a heterogeneous job that of its first component."""
    cluster.wait(f"{jobs['array']}_3")
    cluster.wait(f"{jobs['het']}+0")
    assert cluster.stoker("job", str(jobs["array"]), "--json").json["name"] == "wrap"
    assert cluster.stoker("job", str(jobs["het"]), "--json").json["name"] == "het.sh"


def test_several_jobs(cluster, jobs, monkeypatch):
    wanted = [str(jobs["failed"]), str(jobs["cancelled"])]
    for job in wanted:
        cluster.wait(job)
    text = cluster.stoker("job", *wanted).stdout
    assert re.findall(r"^job (\d+) ", text, re.MULTILINE) == wanted
    document = cluster.stoker("job", *wanted, "--json").json
    assert document["kind"] == "list" and [each["id"] for each in document["jobs"]] == wanted
    assert document["jobs"] == [cluster.stoker("job", job, "--json").json for job in wanted]
    some = cluster.stoker("job", wanted[0], "4000000", wanted[1], "--json", status=1)
    assert [each["id"] for each in some.json["jobs"]] == wanted
    assert "job 4000000 is not known" in some.json["notes"][0] and "4000000 is not known" in some.stderr
    assert "one job" in cluster.stoker("job", "--watch", *wanted, status=2).stderr
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    assert [each.id for each in stoker.job([jobs["failed"], jobs["cancelled"]])] == wanted


def test_user_that_does_not_exist(cluster):
    finished = cluster.stoker("job", "--user", "nosuchuser", status=1)
    assert "there is no user 'nosuchuser' here" in finished.stderr and finished.stdout == ""
    cluster.stoker("job", "--user", "games")  # has no jobs


def test_array(cluster, jobs):
    cluster.wait(f"{jobs['array']}_3")
    document = cluster.stoker("job", str(jobs["array"]), "--json").json
    assert document["kind"] == "array"
    assert sorted(part["id"] for part in document["parts"]) == [f"{jobs['array']}_{task}" for task in (1, 2, 3)]
    one = cluster.stoker("job", f"{jobs['array']}_2", "--json").json
    assert (one["kind"], one["id"]) == ("job", f"{jobs['array']}_2")


def test_heterogeneous(cluster, jobs):
    cluster.wait(f"{jobs['het']}+0")
    document = cluster.stoker("job", str(jobs["het"]), "--json").json
    assert document["kind"] == "heterogeneous"
    assert [(part["id"], part["asked"]["cores"]) for part in document["parts"]] == [
        (f"{jobs['het']}+0", 1),
        (f"{jobs['het']}+1", 2),
    ]
    assert "component" in cluster.stoker("job", str(jobs["het"])).stdout


def test_several_nodes_and_tasks(cluster, jobs):
    cluster.wait(jobs["nodes"])
    document = cluster.stoker("job", str(jobs["nodes"]), "--json").json
    assert len(document["nodes"]) == 2
    assert document["efficiency"]["memory"] == pytest.approx(seff(cluster, jobs["nodes"])[1], rel=1e-9)
    # Two tasks of 150 MB on each node.
    assert document["used"]["memory_per_node_bytes"] == pytest.approx(2 * 165e6, rel=0.2)
    lines = [finding["line"] for finding in document["findings"]]
    assert "#SBATCH --mem=1G" in lines
    accepted(cluster, lines)


@pytest.mark.parametrize(
    ("name", "state"), [("memory", "FAILED"), ("memory of the script", "FAILED"), ("memory of a step", "COMPLETED")]
)
def test_out_of_memory(cluster, jobs, name, state):
    """Slurm cancels the step that has more than was asked for; what becomes of the job is up to its script."""
    assert cluster.wait(jobs[name]) == state
    document = cluster.stoker("job", str(jobs[name]), "--json").json
    (finding,) = (each for each in document["findings"] if each["line"].startswith("#SBATCH --mem="))
    assert finding["what"].startswith("asked 300 MiB, which was not enough: that probably ended it, at ")
    assert finding["line"] in ("#SBATCH --mem=1G", "#SBATCH --mem=2G")
    accepted(cluster, [finding["line"]])


def test_cores_that_were_asked_for_as_tasks(cluster, jobs):
    """With the line as printed the job gets what it was told to ask for, whatever its script says about tasks."""
    cluster.wait(jobs["as tasks"])
    document = cluster.stoker("job", str(jobs["as tasks"]), "--json").json
    assert document["granted"]["cores"] == 4
    (line,) = (each["line"] for each in document["findings"] if "cpus-per-task" in each["line"])
    script = cluster.shared / "tasks.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH -n4\n{line}\ntrue\n")
    again = int(cluster.run("sbatch", "--parsable", "--output=/dev/null", script).stdout)
    cluster.wait(again)
    assert cluster.stoker("job", str(again), "--json").json["granted"]["cores"] == 1


def test_names_of_jobs_are_only_names(cluster, jobs):
    cluster.wait(jobs["evil"])
    finished = cluster.stoker("job", str(jobs["evil"]), "--json")
    assert finished.json["state"] == "COMPLETED"
    assert [step["step"] for step in finished.json["steps"]] == ["batch"]
    text = cluster.stoker("job", str(jobs["evil"])).stdout
    assert "\x1f" not in text
    assert not list(cluster.shared.rglob("pwned"))


def test_own_jobs_wasteful_first(cluster, jobs):
    cluster.wait(jobs["known"])
    listed = cluster.stoker("job", "--json").json["jobs"]
    wasted = [job["wasted_core_s"] for job in listed]
    assert wasted == sorted(wasted, reverse=True)
    assert str(jobs["known"]) in [job["id"] for job in listed]
    assert str(jobs["theirs"]) not in [job["id"] for job in listed]
    text = cluster.stoker("job").stdout
    assert f"next: stoker job {listed[0]['id']}" in text


def test_run_of_stoker_time_in_the_job(cluster):
    loop = "for i in $(seq 40); do echo rate 250; sleep 0.05; done"
    job = cluster.submit(f"{program()} time --pattern 'rate ([0-9.]+)' -- bash -c '{loop}'", "--mem=200M")
    assert cluster.wait(job) == "COMPLETED"
    document = cluster.stoker("job", str(job), "--json").json
    assert document["runs"][0]["samples_per_s"]["value"] == pytest.approx(250)
    assert "250 samples/s" in cluster.stoker("job", str(job)).stdout


def test_gpus(cluster):
    job = cluster.submit("sleep 1", "--gres=gpu:1", "-N2", "--mem=100M")
    cluster.wait(job)
    document = cluster.stoker("job", str(job), "--json").json
    assert (document["asked"]["gpus"], document["granted"]["gpus"], document["efficiency"]["gpu"]) == (2, 2, None)
    assert "not tracked" in cluster.stoker("job", str(job)).stdout


def test_record_deleted_from_the_database(cluster):
    """The controller still knows the job: what it says is shown; what the job used is gone, not zero."""
    job = cluster.submit("true", "--mem=100M")
    cluster.wait(job)
    delete = f"delete from slurm.stoker_job_table where id_job = {job}"
    cluster.run("mariadb", "--no-defaults", "-S", cluster.directory / "db/sock", "-e", delete)
    document = cluster.stoker("job", str(job), "--json").json
    assert document["state"] == "COMPLETED"
    assert (document["used"]["cpu_s"], document["used"]["memory_bytes"]) == (None, None)


def test_watch(cluster):
    """Both nodes are seen while it runs, each with its own processes; the last picture is of the job that ended."""
    line = f"srun {sys.executable} {FOOTPRINT} 100 1 14"
    job = cluster.submit(line, "-N2", "-n2", "--mem=400M")
    cluster.wait(job, "RUNNING")
    shown = cluster.stoker("job", "--watch", str(job), "--every", "1").stdout
    pictures = [part for part in shown.split(f"job {job} ") if "cores busy" in part]
    # The tasks neither begin nor end at the same moment: the picture with most of them.
    seen = max((re.findall(r"^(n[1-4]) +(\d+) .*python", part, re.MULTILINE) for part in pictures), key=len)
    assert len({node for node, _ in seen}) == 2
    assert len({pid for _, pid in seen}) == len(seen) == 4
    assert "COMPLETED: it ended well" in shown.split(f"job {job} ")[-1]
    assert cluster.wait(job) == "COMPLETED"


def test_watch_of_another_users_job(cluster):
    """srun --overlap is for the owner; others see the page, and are told why there is no more."""
    job = cluster.submit("sleep 15", "--mem=100M")
    cluster.wait(job, "RUNNING")
    shown = cluster.stoker("job", "--watch", str(job), "--every", "1", user=NOBODY).stdout
    assert "RUNNING: it runs" in shown
    assert re.search(r"note: srun could not look at the nodes: srun: error: .*Access/permission denied", shown)
    assert "sstat says" in shown
    assert "COMPLETED" in shown


def test_page_describes_every_json_member(cluster, jobs):
    cluster.wait(jobs["known"])
    document = cluster.stoker("job", str(jobs["known"]), "--json").json
    page = (Path(__file__).parents[2] / "docs/commands/job.md").read_text().split("## JSON")[1]
    described = set(re.findall(r"`([a-z_]+)`", page))

    def members(value):
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield key
            for each in inner if isinstance(inner, list) else [inner]:
                yield from members(each)

    assert set(members({key: value for key, value in document.items() if key not in ("stoker", "runs")})) <= described


def test_python(cluster, jobs, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    cluster.wait(jobs["known"])
    result = stoker.job(jobs["known"])
    assert result.document == cluster.stoker("job", str(jobs["known"]), "--json").json
    assert "#SBATCH --mem=3G" in [finding.line for finding in result.findings]
    assert stoker.job(str(jobs["array"])).parts[0].kind == "job"
    assert str(jobs["known"]) in [each.id for each in stoker.job(days=1)]
    with pytest.raises(FileNotFoundError):
        stoker.job(4_000_000)
    with pytest.raises(ValueError):
        stoker.job("1;2")


def test_unknown_job(cluster):
    finished = cluster.stoker("job", "4000000", status=1)
    assert "job 4000000 is not known" in finished.stderr


@pytest.mark.parametrize("word", ["abc", "1;2", "$(id)", "-1x", "1_", "12345678901", "1.0"])
def test_no_number_of_a_job(cluster, word):
    finished = cluster.stoker("job", "--", word, status=2)
    assert "is no number of a job" in finished.stderr


def test_without_slurm(cluster, tmp_path):
    for tool in ("env", "sh"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    finished = cluster.stoker("job", "1", status=1, env={"PATH": str(tmp_path)})
    assert "there is no Slurm here" in finished.stderr


def test_without_the_database(jobs, without_database):
    finished = without_database.stoker("job", str(jobs["held"]), "--json")
    assert finished.json["state"] == "PENDING"
    assert "accounting database does not answer" in finished.json["notes"][0]
    finished = without_database.stoker("job", "4000000", status=1)
    assert "accounting database does not answer" in finished.stderr
    assert "PENDING" in without_database.stoker("job").stdout


def test_time_limit(cluster, jobs):
    """Last, since a minute is the shortest limit there is, and the job began with the first test."""
    assert cluster.wait(jobs["timeout"], "TIMEOUT", seconds=150) == "TIMEOUT"
    document = cluster.stoker("job", str(jobs["timeout"]), "--json").json
    assert document["state_in_words"] == "ended by its time limit"
    assert "#SBATCH --time=00:02:00" in [finding["line"] for finding in document["findings"]]

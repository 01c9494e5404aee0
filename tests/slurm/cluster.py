"""A real Slurm cluster of two nodes on this machine, in a folder of its own.

munged, slurmctld and two slurmd run in the foreground, as this user, on free ports. Nothing of a
cluster that this machine may belong to is read or changed: SLURM_CONF points to this one.
"""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "sinfo")
INSTALL = "apt-get install --no-install-recommends slurm-wlm munge"
NODES = ("n1", "n2")
PATIENCE = 60.0  # seconds for the cluster to come up, and for a daemon to end

CONF = """\
ClusterName=lessons
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MailProg=/bin/true
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


def path() -> str:
    """PATH with the folders of the daemons, which a plain user's may lack."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def missing() -> list[str]:
    return [name for name in NEEDED if not shutil.which(name, path=path())]


@contextlib.contextmanager
def cluster() -> Iterator[Mapping[str, str]]:
    """Start the cluster and yield the environment variables that lead to it."""
    # A short path: that of munge's socket may have a hundred characters.
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    daemons: list[subprocess.Popen] = []
    env = {"SLURM_CONF": str(home / "slurm.conf"), "PATH": path()}
    try:
        configure(home)
        for name, command in commands(home).items():
            with open(home / f"{name}.out", "wb") as out:
                daemons.append(
                    subprocess.Popen(
                        command,
                        env={**os.environ, **env},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
            if name == "munged":
                wait_for((home / "munge.socket").exists, home)
        wait_for(lambda: idle(env) == len(NODES), home)
        yield env
    finally:
        for daemon in reversed(daemons):
            end(daemon)
        shutil.rmtree(home, ignore_errors=True)


def configure(home: Path) -> None:
    (home / "state").mkdir()
    for node in NODES:
        (home / "spool" / node).mkdir(parents=True)
    key = home / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    user = pwd.getpwuid(os.getuid()).pw_name
    facts = {"home": home, "user": user, "host": platform.node().partition(".")[0]}
    (home / "slurm.conf").write_text(CONF.format(ports=free_ports(3), **facts))


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


def commands(home: Path) -> dict[str, list[str]]:
    munged = ["munged", "--foreground", "--force", f"--key-file={home}/munge.key"]
    for what in ("socket", "pid", "log", "seed"):
        option = what if what == "socket" else f"{what}-file"
        munged.append(f"--{option}={home}/munge.{what}")
    every = {"munged": munged, "slurmctld": ["slurmctld", "-D"]}
    every |= {node: ["slurmd", "-D", "-N", node] for node in NODES}
    return {name: [shutil.which(c[0], path=path()), *c[1:]] for name, c in every.items()}


def idle(env: Mapping[str, str]) -> int:
    """How many nodes are ready."""
    command = ["sinfo", "--noheader", "--states=idle", "--Node", "--format=%N"]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    return len(done.stdout.split())


def wait_for(condition: object, home: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            logs = "".join(
                f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}\n"
                for log in [*home.glob("*.log"), *home.glob("*.out"), *home.glob("munge.log")]
            )
            raise RuntimeError(f"the Slurm cluster did not come up:\n{logs}")
        time.sleep(0.1)


def end(daemon: subprocess.Popen) -> None:
    """Ask the process to end; if it does not, end it."""
    if daemon.poll() is None:
        daemon.terminate()
        try:
            daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()

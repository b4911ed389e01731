"""A session with the Python API: a worker is killed, the host lives on. Usage: python crash_session.py STORE"""

import os
import signal
import sys

import torch

from manifests.errors import WorkerDied
from runtime import Host

clip = torch.zeros(1, 16_000)
with Host(sys.argv[1]) as host:
    encoder = host.load("audio-encoder")
    print("first call:", tuple(encoder(clip)["speech"].shape))
    pid = encoder.stats()["pid"]
    os.kill(pid, signal.SIGSTOP)
    pending = encoder.submit(clip)
    os.kill(pid, signal.SIGKILL)
    try:
        pending.result(timeout=30)
        sys.exit("the call should have ended in WorkerDied")
    except WorkerDied as error:
        print(f"the pending call ended in {type(error).__name__}: {error}")
    print("next call: ", tuple(encoder(clip)["speech"].shape), "by a new worker:", encoder.stats()["pid"] != pid)

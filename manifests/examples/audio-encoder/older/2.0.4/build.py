"""Builds this older release by the newest one's recipe. Holds neither weights nor network of its own."""

import runpy
import sys
from pathlib import Path

NEWEST = Path(__file__).resolve().parents[2]
SHARED_MODULES = ("safetensors_file.py", "silero_network.py", "speech_embedding.py")

runpy.run_path(str(NEWEST / "build.py"))["build"](Path(sys.argv[1]), SHARED_MODULES)

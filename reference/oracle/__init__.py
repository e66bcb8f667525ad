"""What probes must report, computed without reference/llmc: the sources of the golden values."""

import sys
from pathlib import Path

# Inputs that are arrays come from where the probes have them: samples.py, given.py.
sys.path.append(str(Path(__file__).parents[2] / "assignments" / "observe"))

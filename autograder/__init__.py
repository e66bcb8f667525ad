"""The grader: builds probes beside a student's code, runs them, and judges what they report."""

__version__ = "0.1.0"

"""Handwritten digits for the perceptron: scikit-learn's 1797 images, 8 x 8, as .data/digits.npz.

The set is part of the package, so nothing is fetched. Its rows stand in the order in which people
wrote them: the last fifth, of people whom training never saw, is for testing.
Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (UCI, 1998).
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np

from files import DataError, replacing

FILE = "digits.npz"
TRAINING = 1437  # images; 360 are left for testing


def arrays() -> dict[str, np.ndarray]:
    """x_train (1437, 64) and x_test (360, 64) float32, 0 to 16; y_train, y_test int64, 0 to 9.

    Raises DataError without the packages of the extra `data`.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError("scikit-learn is not installed", "run `make data`") from None
    x, y = load_digits(return_X_y=True)
    x, y = x.astype(np.float32), y.astype(np.int64)
    return {
        **{"x_train": x[:TRAINING], "y_train": y[:TRAINING]},
        **{"x_test": x[TRAINING:], "y_test": y[TRAINING:]},
    }


def write(folder: Path) -> str:
    """Writes digits.npz unless it is there; returns a line that says so."""
    path = folder / FILE
    if not path.exists():
        content = io.BytesIO()
        np.savez_compressed(content, **arrays())
        with replacing(path) as file:
            file.write(content.getvalue())
    return f"{path}  {TRAINING} digits to train on, 360 to test"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write handwritten digits as arrays.")
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=Path(".data"))
    try:
        print(write(parser.parse_args().out))
    except (DataError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m volfs`: the program volfs."""

import os
import sys

from ._errors import VolfsError
from ._program import program

if __name__ == "__main__":
    try:
        os.execv(program(), ["volfs", *sys.argv[1:]])
    except (VolfsError, OSError) as error:
        sys.exit(f"volfs: {error}")

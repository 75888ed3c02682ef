"""Run a command to its end; print its seconds and its peak memory as the last line, in JSON.

The system counts into a process's peak what its parent held when it was started. So commands are
started by this Python without any package, and no peak can be told below its own few megabytes.

    python -I -S launch.py COMMAND ARGUMENT...
"""

import json
import os
import sys
from time import perf_counter

# Of ru_maxrss.
UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    """Run the command in the arguments, and end as it ended."""
    start = perf_counter()
    process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(process, 0)
    facts = {
        "seconds": perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * UNIT,
    }
    print(json.dumps(facts), flush=True)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()

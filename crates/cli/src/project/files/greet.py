#!/usr/bin/env python3
# A task: JSON on standard input, JSON on standard output, logs on standard error.
# Exit 0: done. 65: the input is wrong, do not try again. 75: nothing was changed, try again. Anything else: tried again
# while the step's budget lasts.
import json
import os
import sys

given = json.load(sys.stdin)
name = given.get("name")
if not name:
    print("the input has no name", file=sys.stderr)
    sys.exit(65)
print(f"greeting {name} (attempt {os.environ.get('INTERLOCK_ATTEMPT', '1')})", file=sys.stderr)
json.dump({"text": f"Hello, {name}."}, sys.stdout)

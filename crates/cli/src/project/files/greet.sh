#!/bin/sh
# A task: JSON on standard input, JSON on standard output, logs on standard error.
# Exit 0: done. 65: the input is wrong, do not try again. 75: nothing was changed, try again. Anything else: tried again
# while the step's budget lasts.
name=$(sed -n 's/.*"name" *: *"\([^"\\]*\)".*/\1/p')
if [ -z "$name" ]; then
  echo "the input has no name" >&2
  exit 65
fi
echo "greeting $name (attempt ${INTERLOCK_ATTEMPT:-1})" >&2
printf '{"text": "Hello, %s."}\n' "$name"

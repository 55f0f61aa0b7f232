#!/usr/bin/env node
// A task: JSON on standard input, JSON on standard output, logs on standard error.
// Exit 0: done. 65: the input is wrong, do not try again. 75: nothing was changed, try again. Anything else: tried again
// while the step's budget lasts.
import { readFileSync } from "node:fs";

const { name } = JSON.parse(readFileSync(0, "utf8"));
if (!name) {
  console.error("the input has no name");
  process.exit(65);
}
console.error(`greeting ${name} (attempt ${process.env.INTERLOCK_ATTEMPT ?? "1"})`);
console.log(JSON.stringify({ text: `Hello, ${name}.` }));

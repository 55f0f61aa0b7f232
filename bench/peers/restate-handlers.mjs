// The process that Restate calls: a service with five no-op steps, and one that does nothing.
// It prints its port when it listens.

import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";

const STEPS = 5;

const bench = restate.service({
  name: "bench",
  handlers: {
    five: async (context) => {
      for (let step = 0; step < STEPS; step++) await context.run("noop", () => null);
    },
    empty: async () => {},
  },
});

const server = http2.createServer(restate.createEndpointHandler({ services: [bench], logger: () => {} }));
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));

// The process that started this one holds its standard input; when that closes, this one ends.
process.stdin.resume().on("end", () => process.exit(0));

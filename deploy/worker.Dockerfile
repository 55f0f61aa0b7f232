# A worker is the binary beside your tasks, on the base image that they need.
#
#   docker build -f deploy/worker.Dockerfile -t interlock-worker deploy
ARG INTERLOCK_IMAGE=interlock:latest
FROM ${INTERLOCK_IMAGE} AS interlock

FROM debian:12-slim
# Commands run in sandboxes that bubblewrap makes. Tasks need none of it; what commands need of the container besides is in
# docs/guide/commands.md, "Commands in containers".
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
COPY --from=interlock /usr/local/bin/interlock /usr/local/bin/interlock
COPY tasks/ /tasks/
# The folder of the key is made here, so that a volume that is mounted there belongs to the worker's user.
RUN mkdir -p /run/interlock/worker && chown 65532:65532 /run/interlock/worker && chmod 0700 /run/interlock/worker
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/local/bin/interlock"]
CMD ["worker"]

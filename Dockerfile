# syntax=docker/dockerfile:1

# docker build -t zenobe .
# docker run -p 127.0.0.1:8000:8000 -v zenobe:/data -e ZENOBE_CREDENTIALS=key:secret zenobe

FROM rust:1-bookworm AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
ENV XDG_CACHE_HOME=/cache
WORKDIR /source
COPY . .
# RocksDB stays in a cache between builds, as it does on a developer's machine.
RUN --mount=type=cache,target=/cache \
    --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo xtask package --stage /stage

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libstdc++6 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin zenobe \
# A new volume inherits owner and mode of the directory it is mounted on, so any user that the container
# runs as can write to it.
 && install --directory --owner=zenobe --group=zenobe --mode=1777 /data
COPY --from=build /stage/bin/zenobe /usr/bin/zenobe
COPY --from=build /stage/share/ /usr/share/
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
# Inside a container, other machines can reach every address. So the server needs ZENOBE_CREDENTIALS, or
# ZENOBE_INSECURE_ACCEPT_ANY_CREDENTIALS=true where only this machine can reach the port.
ENV ZENOBE_LISTEN=0.0.0.0:8000 \
    ZENOBE_DATA=/data/zenobe
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["zenobe", "health"]
ENTRYPOINT ["zenobe"]
CMD ["serve"]

# syntax=docker/dockerfile:1
# A small image of the command `reasonry`, by default its MCP server. docs/releasing.md says how it is run;
# docs/server.md, how it serves over HTTP (EXTRAS=server).
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# Extras of the package to put in, with commas between them, such as providers.
ARG EXTRAS=""
RUN pip install --no-cache-dir "uv>=0.13,<0.14"
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/reasonry
WORKDIR /source
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY src ./src
RUN uv sync --frozen --no-dev --no-editable --compile-bytecode $(printf '%s' "$EXTRAS" | tr ',' '\n' | sed 's/^/--extra /')

FROM python:${PYTHON}-slim
COPY --from=build /opt/reasonry /opt/reasonry
# The volume takes over its owner; nothing else on the root is written.
RUN mkdir /data && chown 65532:65532 /data
ENV PATH=/opt/reasonry/bin:$PATH \
    HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    REASONRY_STORE=/data/reasonry.db
USER 65532:65532
WORKDIR /data
VOLUME /data
ENTRYPOINT ["reasonry"]
CMD ["mcp"]

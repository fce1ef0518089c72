# `closerlook` on a CPU. Build it in this folder, and run it on the files of the current folder:
#     docker build --tag closerlook .
#     docker run --rm --user "$(id -u)" --env HOME=/work --volume "$PWD:/work" closerlook study default --out my-study
# pip reads the build arguments. On x86-64 the usual torch contains several gigabytes of CUDA, which a CPU does not need:
# --build-arg PIP_EXTRA_INDEX_URL=ADDRESS names an index with the CPU builds of torch.

FROM python:3.11-slim AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
WORKDIR /source
COPY pyproject.toml constraints.txt hatch_build.py README.md LICENSE ./
COPY src src
# The slim image has no C compiler; ziglang is one, and stays in this stage.
RUN pip install --no-cache-dir --constraint constraints.txt hatchling ziglang \
    && python -m hatchling build --target wheel

FROM python:3.11-slim
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
COPY constraints.txt /tmp/
COPY --from=build /source/dist /tmp/dist
RUN wheel="$(echo /tmp/dist/*.whl)" \
    && pip install --no-cache-dir --constraint /tmp/constraints.txt "${wheel}[hub,peft]" \
    && rm -r /tmp/dist /tmp/constraints.txt \
    && useradd --create-home closerlook \
    && install --directory --owner closerlook /work
USER closerlook
WORKDIR /work
ENTRYPOINT ["closerlook"]
CMD ["--help"]

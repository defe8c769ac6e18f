# cwbench with what films need (EGL, else OSMesa). Apptainer: apptainer build cwbench.sif docker-daemon://cwbench:latest
#   docker build -t cwbench .
#   docker run --gpus all -v "$PWD:/work" cwbench run --method recall --seq cw3-1 --protocol smoke
FROM python:3.12-slim-bookworm
RUN apt-get update -q \
 && apt-get install -q -y --no-install-recommends libegl1 libgl1 libosmesa6 g++ \
 && rm -rf /var/lib/apt/lists/*
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics
COPY . /opt/cwbench
ARG COMMIT=""
ENV CWBENCH_COMMIT=$COMMIT
RUN pip install --no-cache-dir -c /opt/cwbench/constraints.txt /opt/cwbench \
 && pip install --no-cache-dir imageio-ffmpeg
WORKDIR /work
ENTRYPOINT ["cwbench"]

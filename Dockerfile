# twagent in a container, where the machine is no Debian:
#   docker build -t twagent . && docker run -it --rm -v twagent:/root/.local/state/twagent twagent run conv2d
# For an NVIDIA GPU add `--gpus all`; NVRTC comes by `pip install` (docs/install.md).
FROM debian:12-slim
WORKDIR /opt/twagent
COPY packaging/packages packaging/apt.sh packaging/
RUN bash -euo pipefail -c 'root=$PWD; . packaging/apt.sh; apt_install run; rm -rf /var/lib/apt/lists/*'
COPY . .
RUN cmake --preset release && cmake --build --preset release && cmake --install build/release
ENTRYPOINT ["twagent"]
CMD ["run", "conv2d", "--budget-time", "110s"]

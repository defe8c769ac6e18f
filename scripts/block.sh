#!/usr/bin/env bash
# One block of GPU time: train experiments for at most MINUTES, then pack what reports need.
# Finished segments are in the archive whenever it stops; the rest begins again in another block.
#
#   scripts/block.sh EXPERIMENT[,EXPERIMENT...] MINUTES ARCHIVE.tar.gz [OPTION...]
#
# An experiment is a name or a TOML file; options are those of `cwbench experiment`. Join experiments
# by + instead of the comma to train them beside each other, each in its own process: small ones
# share a GPU well under NVIDIA's MPS (nvidia-cuda-mps-control -d). Divide the cores with --workers.
# Ctrl-C or TERM pauses all of them and packs what is finished.
set -euo pipefail
if [ $# -lt 3 ]; then sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; fi
IFS=+ read -ra processes <<<"$1"
minutes=$2 archive=$3
shift 3
results=${CWBENCH_RESULTS:-results}

began=$SECONDS
code=0
started=()
for experiments in "${processes[@]}"; do
  IFS=, read -ra experiments <<<"$experiments"
  # USR1 asks for a pause and leaves a minute for it; a process that ignores it is killed.
  timeout --signal=USR1 --kill-after=90 "${minutes}m" \
    python3 -m cwbench experiment "${experiments[@]}" --results "$results" --no-live --yes "$@" &
  started+=($!)
done
trap 'kill -USR1 "${started[@]}" 2>/dev/null || true' INT TERM  # jobs in the background get none
for process in "${started[@]}"; do
  wait "$process" || code=$?
  while kill -0 "$process" 2>/dev/null; do wait "$process" || code=$?; done  # after a signal
done
python3 -m cwbench status "$results" | sed -n 1,20p
python3 -m cwbench merge "$results" --into "$archive" || code=$?
echo "$((SECONDS - began)) s, $(du -h "$archive" | cut -f1) in $archive"
exit "$code"

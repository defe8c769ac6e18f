#!/usr/bin/env bash
# A Slurm of this one machine, for tests: slurm.sh start DIR | slurm.sh stop DIR
# Needs root and Debian's slurmctld, slurmd, slurm-client, munge; no systemd. Then: export SLURM_CONF=DIR/slurm.conf
set -eu
action=$1 dir=$(realpath -m "$2") here=$(hostname -s) cores=$(nproc)
log=$dir/log

stop() {
  for name in slurmd slurmctld munged; do
    [ -f "$dir/$name.pid" ] && kill "$(cat "$dir/$name.pid")" 2>/dev/null || true
  done
  for _ in $(seq 50); do
    alive=0
    for name in slurmd slurmctld munged; do
      [ -f "$dir/$name.pid" ] && kill -0 "$(cat "$dir/$name.pid")" 2>/dev/null && alive=1
    done
    [ $alive = 0 ] && return
    sleep 0.2
  done
}

start() {
  mkdir -p "$dir/state" "$dir/spool" "$log"
  chmod 755 "$dir"
  chmod 700 "$log"
  head -c 1024 /dev/urandom >"$dir/munge.key"
  chmod 400 "$dir/munge.key"
  cat >"$dir/slurm.conf" <<CONF
ClusterName=cwbench
SlurmctldHost=$here(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
# A job that is put back waits until its credential has expired: two minutes by default.
AuthInfo=socket=$dir/munge.socket,cred_expire=20
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$log/slurmctld
SlurmdLogFile=$log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=5,batch_sched_delay=1
ReturnToService=2
KillWait=10
NodeName=$here NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=test Nodes=$here Default=YES MaxTime=INFINITE State=UP
CONF
  echo "CgroupPlugin=autodetect" >"$dir/cgroup.conf"
  export SLURM_CONF=$dir/slurm.conf
  # --force: munged complains about folders under /tmp that others may write to
  munged --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" \
    --pid-file="$dir/munged.pid" --log-file="$log/munged" --seed-file="$dir/munge.seed"
  slurmctld
  slurmd
  for _ in $(seq 60); do
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && return
    sleep 0.5
  done
  tail -n 5 "$log"/slurm* >&2
  stop
  return 1
}

$action

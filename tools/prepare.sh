# SPDX-License-Identifier: Apache-2.0
# Sourced by ./test, ./demo and bench/peers: packages, caches, environments and builds. Nothing here runs on its own.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stoker
logs=$root/build/logs
# The system's own interpreter, so that a version manager in PATH changes nothing.
python=${STOKER_PYTHON:-/usr/bin/python3}

export CCACHE_DIR=$cache/ccache
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
export PIP_CACHE_DIR=$cache/pip PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export LC_ALL=${LC_ALL:-C.UTF-8}
unset PYTHONPATH PYTHONHOME

# What a group of work needs: "debian-package  command:NAME | cmake:VERSION | header:NAME | python:MODULES | file:PATTERN".
# Looked for by what it provides, so that any system that has it will do.
needs_of() {
  case $1 in
    build) cat <<'TABLE' ;;
g++ command:g++
cmake cmake:3.25
ninja-build command:ninja
libfmt-dev header:fmt/format.h
libtomlplusplus-dev header:toml++/toml.h
nlohmann-json3-dev header:nlohmann/json.hpp
libzstd-dev header:zstd.h
zlib1g-dev header:zlib.h
libdeflate-dev header:libdeflate.h
liblz4-dev header:lz4frame.h
libsnappy-dev header:snappy-c.h
libjpeg62-turbo-dev header:jpeglib.h
libpng-dev header:png.h
libwebp-dev header:webp/demux.h
libgif-dev header:gif_lib.h
libhwy-dev header:hwy/highway.h
libjs-dygraphs file:/usr/share/javascript/dygraphs/dygraph.min.js
python3-venv python:venv,ensurepip
python3-dev header:Python.h
ca-certificates file:/etc/ssl/certs/ca-certificates.crt
TABLE
    speed) echo "ccache command:ccache" ;;
    test) cat <<'TABLE' ;;
libgtest-dev header:gtest/gtest.h
googletest file:/usr/src/googletest/googletest/src/gtest-all.cc
g++-aarch64-linux-gnu command:aarch64-linux-gnu-g++
qemu-user command:qemu-aarch64
libarchive-tools command:bsdtar
libjpeg-turbo-progs command:cjpeg
zstd command:zstd
git command:git
chromium command:chromium
xfsprogs file:/usr/sbin/mkfs.xfs
libfuse3-dev header:fuse3/fuse_lowlevel.h
fuse3 command:fusermount3
rsync command:rsync
slurmctld command:slurmctld
slurmd command:slurmd
slurmdbd command:slurmdbd
slurm-client command:sacct
munge command:munged
mariadb-server command:mariadbd
mariadb-client command:mariadb
TABLE
    bench) cat <<'TABLE' ;;
libopencv-dev header:opencv4/opencv2/core.hpp
libturbojpeg0-dev header:turbojpeg.h
pkg-config command:pkg-config
fio command:fio
rsync command:rsync
fpart command:fpsync
TABLE
    clang) cat <<'TABLE' ;;
clang-14 command:clang++-14
libclang-rt-14-dev file:/usr/lib/llvm-14/lib/clang/14*/lib/linux/libclang_rt.fuzzer-*.a
lld-14 command:ld.lld-14
llvm-14 file:/usr/lib/llvm-14/bin/llvm-symbolizer
clang-tidy-14 command:clang-tidy-14
clang-format-14 command:clang-format-14
TABLE
  esac
}

has() {
  local kind=${1%%:*} what=${1#*:}
  case $kind in
    command) command -v "$what" >/dev/null ;;
    cmake) command -v cmake >/dev/null && printf '%s\n' "$what" "$(cmake --version | grep -o '[0-9.]*' | head -n 1)" | sort -C -V ;;
    python) [[ -x $python ]] && "$python" -c "import $what" 2>/dev/null ;;
    file) compgen -G "$what" >/dev/null ;;
    header)
      local folder=/usr/include
      [[ $what != Python.h ]] ||
        folder=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)
      [[ -e $folder/$what ]] || { command -v g++ >/dev/null &&
        g++ -x c++ -E -include "$what" -o /dev/null /dev/null 2>/dev/null; } ;;
  esac
}

# Prints the Debian packages of these groups that are missing.
missing_of() {
  local group package test
  for group in "$@"; do
    while read -r package test; do has "$test" || echo "$package"; done < <(needs_of "$group")
  done
}

# Brings what the groups need: installs it as root, says what to ask for otherwise.
require() {
  local missing can_wait
  mapfile -t missing < <(missing_of "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $EUID == 0 ]] && command -v apt-get >/dev/null; then
    echo "installing Debian packages: ${missing[*]}"
    mkdir -p "$logs"
    local apt=(apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
    if ! { DEBIAN_FRONTEND=noninteractive "${apt[@]}" update &&
      DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --no-install-recommends "${missing[@]}"; } >"$logs/apt.log" 2>&1; then
      tail -n 20 "$logs/apt.log" >&2
      echo "error: the packages could not be installed (whole log: $logs/apt.log)" >&2
      return 1
    fi
    mapfile -t missing < <(missing_of "$@")
    [[ ${#missing[@]} -eq 0 ]] && return 0
    echo "error: installed, but still not usable: ${missing[*]}" >&2
    return 1
  fi
  # cmake, ninja and ccache are no reason to stop: the first two come from PyPI, the last only saves time.
  mapfile -t can_wait < <(printf '%s\n' "${missing[@]}" | grep -x -e cmake -e ninja-build -e ccache)
  if [[ ${#can_wait[@]} -eq ${#missing[@]} ]]; then
    echo "without root: going on without ${missing[*]} (cmake and ninja are taken from PyPI, ccache only saves time)"
    return 0
  fi
  without_root "${missing[@]}"
  return 1
}

# What someone who is not root needs to know.
without_root() {
  local build
  mapfile -t build < <(missing_of build | grep -v -x -e cmake -e ninja-build)
  cat >&2 <<TEXT
Some of what this needs is not installed, and installing it takes root. Ask the administrator for:

  apt-get install --no-install-recommends $*

TEXT
  if [[ ${#build[@]} -gt 0 ]]; then
    cat >&2 <<TEXT
What works without all of it: to build and use stoker (./demo, pip install .) these are enough:

  apt-get install --no-install-recommends ${build[*]}

cmake and ninja are then taken from PyPI; ccache only saves time. The packages beyond that are for ./test.
TEXT
  else
    cat >&2 <<TEXT
What works without it: ./demo and pip install . (all they need is here); ./test --quick if libgtest-dev,
libarchive-tools, zstd and git are here. The missing packages are only for the sanitizer builds and the linters.
TEXT
  fi
}

# Writes the marker last: an environment without it was interrupted and is made anew.
# $1 directory, $2 requirements file, $3... further options of pip
environment() {
  local dir=$1 requirements=$2
  local stamp; stamp=$("$python" -c 'import sys; print(sys.version)'; cat "$requirements")
  mkdir -p "$(dirname "$dir")"
  exec 9>"$dir.lock"
  flock 9
  if [[ ! -e $dir/.complete || $(<"$dir/.complete") != "$stamp" ]]; then
    rm -rf "$dir"
    "$python" -m venv "$dir" &&
      "$dir/bin/python" -m pip install -q "${@:3}" -r "$requirements" &&
      printf '%s\n' "$stamp" >"$dir/.complete" || { exec 9>&-; return 1; }
  fi
  exec 9>&-
}

peers=(webdataset torch tensorflow tensorboard scipy lmdb hdf5 arrow opencv)

# Where the environment of a group of peers lies: one per requirements file and Python version.
peer_directory() {
  local hash
  hash=$({ "$python" --version; cat "$root/tests/peers/$1.txt"; } | sha256sum | cut -c1-12)
  echo "$cache/venvs/$1-$hash"
}

# Gigabytes that are used once: no second copy in pip's cache, bytecode only for what is imported.
make_peers() {
  local peer
  for peer in "${peers[@]}"; do
    local start=$SECONDS
    environment "$(peer_directory "$peer")" "$root/tests/peers/$peer.txt" --no-cache-dir --no-compile || return 1
    echo "$peer: $((SECONDS - start)) s"
  done
}

# Tells pytest where the peers' interpreters are.
export_peers() {
  local peer
  for peer in "${peers[@]}"; do
    export "STOKER_PEER_${peer^^}=$(peer_directory "$peer")/bin/python"
  done
}

# build/venv with what tests/requirements.txt lists, and cmake and ninja where the system has none that will do.
make_venv() {
  environment "$root/build/venv" "$root/tests/requirements.txt" || return 1
  with_tools has cmake:3.25 || "$root/build/venv/bin/python" -m pip install -q cmake || return 1
  with_tools has command:ninja || "$root/build/venv/bin/python" -m pip install -q ninja || return 1
}

with_tools() { local PATH=$root/build/venv/bin:$PATH; "$@"; }

# $1 preset, $2... targets
build() {
  (cd "$root" && with_tools cmake --preset "$1" && with_tools cmake --build "build/$1" -- "${@:2}")
}

# The same compiler and warnings as the release preset has, so that the compiler cache serves both builds.
install_python() {
  (cd "$root" && export CXX=g++ && with_tools build/venv/bin/python -m pip install -q --no-build-isolation --no-deps --force-reinstall \
    --config-settings=cmake.define.STOKER_WERROR=ON .)
}

# A fixed address layout: clang 14's sanitizers fail now and then under kernels that randomise more bits.
plain_addresses() {
  if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi
}

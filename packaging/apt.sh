# Sourced by quickstart and check: finds what is missing of packaging/apt-packages and installs it.
# apt_missing GROUP...: prints the packages of those groups that are not installed, a line each.
apt_missing() {
    local group package
    while read -r group package; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done < <(grep -v '^#' "$root/packaging/apt-packages")
}

# apt_print GROUP...: the same for a person; that nothing is missing is said on stderr, so that stdout
# holds packages alone.
apt_print() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        echo "${0##*/}: no dpkg here: what follows is all that is needed, by Debian's names" >&2
    fi
    missing=$(apt_missing "$@")
    if [ -n "$missing" ]; then
        echo "$missing"
    else
        echo "${0##*/}: nothing is missing" >&2
    fi
}

# apt_install GROUP...: installs what is missing, with sudo where this is not root.
apt_install() {
    local missing=() sudo=()
    if ! command -v apt-get >/dev/null; then
        echo "${0##*/}: no apt-get here; packaging/apt-packages lists what is needed" >&2
        return 0
    fi
    mapfile -t missing < <(apt_missing "$@")
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "${0##*/}: these packages are missing, and there is no sudo; as root:" >&2
            echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
            return 3
        fi
        sudo=(sudo)
    fi
    echo "installing: ${missing[*]}"
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends "${missing[@]}" >/dev/null ||
        { echo "${0##*/}: apt-get could not install: ${missing[*]}" >&2; return 3; }
}

# Sourced by quickstart and check: finds what is missing of packaging/packages and installs it.
# apt_missing GROUP...: prints Debian's packages of those groups that are not installed, a line each.
apt_missing() {
    local group package
    while read -r group package _; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done < <(grep -v '^#' "$root/packaging/packages")
}

# apt_elsewhere: the command that installs what ./quickstart needs where there is no apt-get.
apt_elsewhere() {
    local names
    if [ "$(uname -s)" != Linux ]; then
        echo "${0##*/}: twagent runs on Linux. Here, in a container: docker build -t twagent . && docker run -it --rm twagent" >&2
        return 3
    fi
    names() { awk -v column="$1" '$1 == "run" && !seen[$column]++ { printf " %s", $column }' "$root/packaging/packages"; }
    if command -v dnf >/dev/null; then
        echo "${0##*/}: no apt-get here. What is needed, on Fedora: dnf install$(names 3)" >&2
    elif command -v pacman >/dev/null; then
        echo "${0##*/}: no apt-get here. What is needed, on Arch: pacman -S --needed$(names 4)" >&2
    else
        echo "${0##*/}: no apt-get here. What is needed, by Debian's names:$(names 2)" >&2
    fi
}

# apt_print GROUP...: the same for a person; that nothing is missing is said on stderr, so that stdout
# holds packages alone.
apt_print() {
    local missing
    command -v dpkg-query >/dev/null || { apt_elsewhere; return; }
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
    command -v apt-get >/dev/null || { apt_elsewhere; return; }
    mapfile -t missing < <(apt_missing "$@")
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "${0##*/}: these packages are missing, and there is no sudo; ask who administers this machine for:" >&2
            echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
            return 3
        fi
        sudo=(sudo)
    fi
    echo "installing: ${missing[*]}"
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends "${missing[@]}" >/dev/null ||
        { echo "${0##*/}: that failed, as is said above; once these are there, run it again (as root, or ask who administers this machine for):" >&2
          echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
          return 3; }
}

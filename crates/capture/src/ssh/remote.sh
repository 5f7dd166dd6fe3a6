# What runs on the other host: a shell that answers requests. It only reads, but for `push`, which writes one file.
#
# A request is a line: a verb and its words, every byte of them that could mean something as an octal escape. An answer
# is a line that begins with the mark, lines of base64, and a line that begins with a full stop, which no base64 does:
# nothing that is read here can look like the end of an answer. `mark` is set by the line before this one.

set -u
umask 077
LC_ALL=C
export LC_ALL
# Nothing that is run here may read our requests.
exec 3<&0 </dev/null 4>&1

say() { printf '%s %s\n' "$mark" "$*"; }
finish() { printf '. %s\n' "${1-}"; }
line() { base64 | tr -d '\n'; }

# What a login script wrote before stands before the mark, perhaps without a line break.
echo
lacking=
for tool in base64 cat grep head id ls stat tail tr uname; do
    command -v "$tool" >/dev/null 2>&1 || lacking="$lacking $tool"
done
if [ -n "$lacking" ]; then
    say lacks "$lacking"
    finish
    exit 0
fi
uid=$(id -u)
# Escapes what is not printable; not every ls can.
escaped=b
ls -lnbd / >/dev/null 2>&1 || escaped=
file=

# The state of a path: ok, absent, denied, or special (no regular file).
state() {
    if [ -f "$1" ]; then
        if [ -r "$1" ]; then state=ok; else state=denied; fi
    elif [ -e "$1" ]; then
        state=special
    else
        state=absent up=$1
        while up=${up%/*}; [ -n "$up" ] && ! [ -d "$up" ]; do :; done
        if [ -n "$up" ] && ! [ -x "$up" ]; then state=denied; fi
    fi
}

# part FROM LIMIT PATH: bytes of a file, and behind them one digit, 0 if it could be read.
part() {
    case $3 in /*) ;; *) set -- "$1" "$2" "./$3" ;; esac
    state "$3"
    about=
    case $state$3 in
        ok/proc/[0-9]*/fd/*) about=$(stat -L -c '%s %.3Y %.3Z %d %i' "$3" 2>/dev/null) ;;
        ok/proc/*) ;;
        ok*) about=$(stat -L -c '%s %.3Y %.3Z %d %i' "$3" 2>/dev/null) ;;
    esac
    say "$state" "$about"
    if [ "$state" = ok ]; then
        {
            if [ "$1" = 0 ]; then head -c "$2" "$3"; else tail -c "+$(($1 + 1))" "$3" | head -c "$2"; fi 2>/dev/null
            printf %s "$?"
        } | base64
    fi
    finish
}

# tree LIMIT PATH: what a path is; of a link where it leads, of a directory its names, of a file its beginning.
tree() {
    if [ -h "$2" ]; then
        say link
        ls "-lnd$escaped" "$2" 2>/dev/null | base64
        finish
    elif [ -d "$2" ]; then
        say directory
        ls "-1A$escaped" "$2" 2>/dev/null | head -c 4000000 | base64
        finish
    else
        part 0 "$1" "$2"
    fi
}

# seek PATH TEXT...: the last line that holds one of the texts, with its offset.
seek() {
    case $1 in /*) path=$1 ;; *) path=./$1 ;; esac
    shift
    texts=
    for text; do
        texts="$texts$text
"
    done
    say ok
    grep -abF -e "${texts%?}" "$path" 2>/dev/null | tail -n 1 | head -c 64 | base64
    finish
}

# find TEXT PATH...: the lines that hold a text.
find_lines() {
    text=$1
    shift
    say ok
    cat "$@" 2>/dev/null | grep -F -e "$text" | head -c 4000000 | base64
    finish
}

# links PATH...: where links lead.
links() {
    say ok
    ls "-lnd$escaped" "$@" 2>/dev/null | base64
    finish
}

# fds PID: what a process holds open.
fds() {
    if [ -r "/proc/$1/fd" ] && [ -x "/proc/$1/fd" ]; then
        say ok
        ls "-ln$escaped" "/proc/$1/fd" 2>/dev/null | head -c 4000000 | base64
    elif [ -e "/proc/$1" ]; then
        say denied
    else
        say absent
    fi
    finish
}

# holders TEXT: every open descriptor that leads to one of these, one a line, under the name of its process's directory.
holders() {
    say ok
    ls "-ln$escaped" /proc/[0-9]*/fd 2>/dev/null | grep -F -e /proc/ -e "$1" | head -c 4000000 | base64
    finish
}

# exes: the executables of all processes that may be seen.
exes() {
    say ok
    ls "-lnd$escaped" /proc/[0-9]*/exe 2>/dev/null | head -c 4000000 | base64
    finish
}

# names: how all processes were called, each under a line with its path.
names() {
    say ok
    head -c 200 /proc/[0-9]*/cmdline 2>/dev/null | head -c 4000000 | base64
    finish
}

# clock: nanoseconds since the epoch, seconds since boot before and after that was asked, clock ticks in a second.
clock() {
    before=0 after=0
    read -r before _ </proc/uptime
    now=$(date +%s%N 2>/dev/null)
    read -r after _ </proc/uptime
    say ok "$now" "$before" "$after" "$(getconf CLK_TCK 2>/dev/null)"
    finish
}

# run LIMIT WORD...: a command. Behind the full stop: the end of what it wrote to standard error, and its exit code.
run() {
    limit=$1
    shift
    say ok
    end=$({
        {
            "$@" 2>&5
            printf '\n%s' "$?" >&5
        } | head -c "$limit" | base64 >&4
    } 5>&1 | tail -c 8192 | line)
    finish "$end"
}

# The directory of the program with this hash.
place() {
    case ${XDG_CACHE_HOME-} in
        /*) base=$XDG_CACHE_HOME ;;
        *) base=${HOME-}/.cache ;;
    esac
    directory=$base/ascertain/$1
    why=
    case $base in /?*) ;; *) why='the user has no home directory' ;; esac
}

# Whether only we can write to a directory. `why` says it if not.
ours() {
    [ -z "$why" ] || return 1
    if [ -h "$1" ] && [ "$1" != "$base" ]; then
        why="$1 is a link"
        return 1
    fi
    set -- "$1" $(ls -ldn "$1/." 2>/dev/null)
    case ${2-} in
        '') why="$1 cannot be looked at" ;;
        d????w* | d???????w*) why="others may write to $1" ;;
        d*) [ "${4-}" = "$uid" ] || why="$1 does not belong to the user (user ID ${4-unknown}, not $uid)" ;;
        *) why="$1 is no directory" ;;
    esac
    [ -z "$why" ]
}

hash_is() {
    sum=$(sha256sum <"$1" 2>/dev/null)
    [ "${sum%% *}" = "$2" ]
}

# have SHA256: whether the program is there, in a place where nobody else can have put it.
have() {
    file=
    place "$1"
    if [ -n "$why" ]; then
        state=refused
    elif ! [ -e "$directory/ascertain" ]; then
        state=absent
    elif ! command -v sha256sum >/dev/null 2>&1; then
        state=refused why='there is no sha256sum'
    elif ! { ours "$base" && ours "$base/ascertain" && ours "$directory"; }; then
        state=refused
    elif [ -h "$directory/ascertain" ] || ! [ -f "$directory/ascertain" ] || ! [ -x "$directory/ascertain" ]; then
        state=changed
    elif hash_is "$directory/ascertain" "$1"; then
        state=present file=$directory/ascertain
    else
        state=changed
    fi
    say "$state"
    finish "$(printf %s "$why" | line)"
}

# push SHA256 LENGTH: first answers whether it can be; then takes so many bytes, and answers again.
push() {
    place "$1"
    command -v sha256sum >/dev/null 2>&1 || why='there is no sha256sum'
    new=$directory/.new.$$
    for step in "$base" "$base/ascertain" "$directory"; do
        [ -z "$why" ] && ! [ -d "$step" ] && why=$(mkdir -p "$step" 2>&1)
        ours "$step" || break
    done
    [ -n "$why" ] || why=$( { : >"$new"; } 2>&1)
    if [ -n "$why" ]; then
        say refused
        finish "$(printf %s "$why" | line)"
        exit 0
    fi
    say ready
    finish
    why=$( { head -c "$2" <&3 >"$new"; } 2>&1)
    if [ -z "$why" ] && ! hash_is "$new" "$1"; then why="what arrived is not what was sent"; fi
    [ -n "$why" ] || why=$( { chmod 700 "$new" && mv -f "$new" "$directory/ascertain"; } 2>&1)
    if [ -n "$why" ]; then
        rm -f "$new"
        say failed
        finish "$(printf %s "$why" | line)"
        # What was not taken of the file must not be read as requests.
        exit 0
    fi
    file=$directory/ascertain
    say present
    finish
}

# capture LIMIT WORD...: what the pushed program says. A key is in the environment of that one process only.
capture() {
    limit=$1
    shift
    if [ -n "$file" ]; then set -- "$limit" "$file" "$@"; else set -- "$limit" false; fi
    if [ -n "${key-}" ]; then
        ASCERTAIN_REMOTE_API_KEY=$key
        export ASCERTAIN_REMOTE_API_KEY
    fi
    run "$@"
    unset ASCERTAIN_REMOTE_API_KEY
}

say hello "$uid" "$(uname -s)" "$(uname -m)"
finish
while IFS=' ' read -r verb rest <&3; do
    set --
    for word in $rest; do
        word=$(printf '%b.' "$word")
        set -- "$@" "${word%.}"
    done
    case $verb in
        part) part "$@" ;;
        tree) tree "$@" ;;
        seek) seek "$@" ;;
        find) find_lines "$@" ;;
        links) links "$@" ;;
        fds) fds "$@" ;;
        holders) holders "$@" ;;
        exes) exes ;;
        names) names ;;
        clock) clock ;;
        run) run "$@" ;;
        have) have "$@" ;;
        push) push "$@" ;;
        key) IFS= read -r key <&3 ;;
        capture) capture "$@" ;;
        *) exit 0 ;;
    esac
done

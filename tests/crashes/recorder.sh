# recorder.sh LOG KEY DISPATCH DRIVER DIES PROGRAM ARGUMENT…
#
# Runs a program and keeps the log of what it did, as a system that a step changes would: a line in LOG when the program
# begins and one when it has done its work, with the files of its outputs. DIES is "began" or "done": at that line the
# process DRIVER is killed and this process lives on, as a program that goes on working; "-" kills nobody.
#
# It runs once per effect, so it is a script of the smallest shell: nothing starts faster.

log=$1 key=$2 dispatch=$3 driver=$4 dies=$5
shift 5
known="\"key\":\"$key\",\"dispatch\":\"$dispatch\",\"process\":$$"
out=$log.$$.out
err=$log.$$.err

note() {
    printf '{"what":"%s",%s%s}\n' "$1" "$known" "$2" >>"$log"
    if test "$dies" = "$1"; then
        kill -9 "$driver"
        exec /bin/sleep 60
    fi
}

note began ''
"$@" >"$out" 2>"$err"
code=$?
note 'done' ",\"code\":$code,\"stdout\":\"$out\",\"stderr\":\"$err\""
if test -s "$err"; then /bin/cat "$err" >&2; fi
if test -s "$out"; then /bin/cat "$out"; fi
exit "$code"

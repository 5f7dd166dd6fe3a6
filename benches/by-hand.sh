#!/bin/sh
# What a person does who wants to know whether a llama-server runs as intended: the same look-ups as
# `ascertain verify`, with tr, grep and curl, one after the other. It reads what it finds and judges nothing.
#
#   benches/by-hand.sh PID PORT
set -eu
pid=$1 port=$2
url=http://127.0.0.1:$port

echo '# command line'
tr '\0' '\n' <"/proc/$pid/cmdline"
echo '# environment'
tr '\0' '\n' <"/proc/$pid/environ" | grep -E '^(LLAMA_|HOME=|XDG_CONFIG_HOME=)' || true
echo '# configuration files'
home=$(tr '\0' '\n' <"/proc/$pid/environ" | grep '^HOME=' | cut -d= -f2-) || true
cat /etc/llama.cpp/config.ini "${home:-/nonexistent}/.config/llama.cpp/config.ini" 2>/dev/null || true
echo '# process'
readlink "/proc/$pid/exe"
grep -E '^(VmRSS|VmLck|Threads)' "/proc/$pid/status"
grep -o '/.*\.gguf$' "/proc/$pid/maps" | sort -u
echo '# log'
grep -E -i 'spec|draft|mtp|ctx|warn|error|fail' "$(readlink "/proc/$pid/fd/2")" || true
for path in /health /props /slots /metrics /v1/models; do
  echo "# $path"
  curl -s --max-time 5 "$url$path"
  echo
done

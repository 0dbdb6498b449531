# Source this file to start servers in the background, and a sandbox on loopback for programs that need the service. When
# the script exits, the servers are stopped, and the directory $out is removed.

out=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$out"' EXIT

# start LOG COMMAND...: starts a server, and waits for the line that contains its address.
start() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 &
  await "$log" 'http://'
}

# await LOG PATTERN: waits until the server that was started last has written a line that matches. Exits if the server ends
# before that, or after 120 seconds.
await() {
  local deadline=$((SECONDS + 120))
  while ((SECONDS < deadline)); do
    grep -q "$2" "$1" && return
    kill -0 $! 2>/dev/null || break
    sleep 0.05
  done
  cat "$1" >&2
  exit 1
}

# field NAME LOG: prints the value that a sandbox has printed under this name.
field() { awk -v name="$1" '$1 == name { print $2 }' "$2"; }

# start_sandbox COMMAND...: starts a sandbox with this command, and puts its address and credentials into the environment.
start_sandbox() {
  local log=$out/sandbox
  start "$log" "$@" --port 0 --seed 7
  # The last line of the sandbox, below the credentials.
  await "$log" '^Ctrl-C'
  TALLYFOLD_CLUSTER_ENDPOINT=$(awk '/^tallyfold sandbox on/ { print $4 }' "$log")
  TALLYFOLD_BASE_URL=$TALLYFOLD_CLUSTER_ENDPOINT
  TALLYFOLD_AUTH_URL=$TALLYFOLD_CLUSTER_ENDPOINT
  TALLYFOLD_CLIENT_ID=$(field client_id "$log")
  TALLYFOLD_CLIENT_SECRET=$(field client_secret "$log")
  TALLYFOLD_CONTROL_AUDIENCE=$(field control_audience "$log")
  TALLYFOLD_ORCHESTRATION_AUDIENCE=$(field orchestration_audience "$log")
  export "${!TALLYFOLD_@}"
}

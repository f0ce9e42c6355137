#!/bin/sh
# Sends an event of Claude Code to `palimpsest watch`. The arguments are the milliseconds that the
# agent waits at most, and the name of the event. `palimpsest watch` puts the client into the data
# folder. Until then, the start of a session starts the watcher. A hook must never stop the agent,
# so this script prints nothing and exits with 0.
data=${PALIMPSEST_DATA:-${XDG_DATA_HOME:-$HOME/.local/share}/palimpsest}
client=$data/hooks/palimpsest-hook
[ -x "$client" ] && exec "$client" claude-code "$data" "$1"
# Reads the event, because an agent may fail if its hook leaves input unread.
cat >/dev/null
[ "$2" = SessionStart ] || exit 0
command -v palimpsest >/dev/null || exit 0
# Windows has no hooks yet.
case $(uname) in MINGW* | MSYS* | CYGWIN*) exit 0 ;; esac
palimpsest watch --background </dev/null >/dev/null 2>&1 &
exit 0

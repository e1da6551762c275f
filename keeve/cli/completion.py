"""`keeve completion`: what a shell needs to complete the words of a command, ids of sessions among them.

The script comes of the commands themselves. In bash and fish it asks `keeve ls --ids` for ids: of the store or server
that the environment names, and in bash that the words name.

The one rule: it is written to the standard output, and nothing of anybody's shell is changed.
"""

from __future__ import annotations

import shlex
from typing import Final, Literal

from cyclopts import App

from keeve.cli.output import Output

Shell = Literal["bash", "zsh", "fish"]

SESSIONS: Final = (
    *("chat", "turn", "queue", "steer", "interrupt", "show", "state", "messages", "chain", "fork", "snapshot"),
    *("delete", "erase", "prove", "approve", "refuse"),
)
"""The commands whose first word is a session."""

MOST: Final = 200
"""Ids that are offered at once."""

_BASH: Final = """
_keeve_and_sessions() {
  _keeve "$@"
  (( ${#COMPREPLY[@]} )) && return
  local cur="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" words=0 i id quoted
  local -a where=()
  [[ $cur == -* ]] && return
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in
      --store|--server|--token-file) where+=("${COMP_WORDS[i]}" "${COMP_WORDS[++i]}") ;;
      -*) ;;
      *) if [[ -z $command ]]; then command="${COMP_WORDS[i]}"; else ((words++)); fi ;;
    esac
  done
  if [[ $before == --session ]] || { ((words == 0)) && [[ " @SESSIONS@ " == *" $command "* ]]; }; then
    while IFS= read -r id; do
      printf -v quoted '%q' "$id"
      COMPREPLY+=("$quoted")
    done < <(command keeve ls --ids --limit @MOST@ "${where[@]}" -- "$cur" 2>/dev/null)
  fi
}
complete -F _keeve_and_sessions keeve
"""

_FISH: Final = """
function __keeve_sessions
    command keeve ls --ids --limit @MOST@ 2>/dev/null
end
complete -c keeve -n '__fish_seen_subcommand_from @SESSIONS@' -f -a '(__keeve_sessions)'
complete -c keeve -l session -x -a '(__keeve_sessions)'
"""


def tell_completion(program: App, output: Output, shell: Shell) -> None:
    """Give the script for a shell."""
    more = {"bash": _BASH, "fish": _FISH}.get(shell, "")
    more = more.replace("@SESSIONS@", shlex.join(SESSIONS)).replace("@MOST@", str(MOST))
    output.out.write(program.generate_completion(shell=shell).rstrip("\n") + "\n" + more)
    output.out.flush()

"""`keeve completion`: what a shell needs to complete the words of a command, ids of sessions, effects and calls too.

The script comes of the commands themselves. In bash and fish it asks `keeve ls --ids` and `keeve effects` for ids: of
the store or server that the environment names, and in bash that the words name.

The one rule: it is written to the standard output, and nothing of anybody's shell is changed.
"""

from __future__ import annotations

import shlex
from typing import Final, Literal

from cyclopts import App

from keeve.cli.output import Output
from keeve.cli.words import FLAGS, VALUED

Shell = Literal["bash", "zsh", "fish"]

SESSIONS: Final = (
    *("chat", "turn", "queue", "steer", "interrupt", "show", "state", "messages", "chain", "fork", "snapshot"),
    *("delete", "erase", "prove", "approve", "refuse"),
)
"""The commands whose first word is a session."""

CALLS: Final = ("approve", "refuse")
"""Those whose second word is a call that waits for a person."""

MOST: Final = 200
"""Ids that are offered at once."""

_BASH: Final = """
_keeve_and_what_there_is() {
  _keeve "$@"
  local cur="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" first="" words=0 i id quoted
  local -a where=() asks=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in
      --store|--server|--token-file) where+=("${COMP_WORDS[i]}" "${COMP_WORDS[++i]}") ;;
      --actors|--tools|--config) ((i++)) ;;
      -*) ;;
      *)
        if [[ -z $command ]]; then command="${COMP_WORDS[i]}"
        else ((words++)); first="${first:-${COMP_WORDS[i]}}"; fi ;;
    esac
  done
  if [[ -z $command && $cur == -* ]]; then
    COMPREPLY+=($(compgen -W "@BEFORE@" -- "$cur"))
  fi
  (( ${#COMPREPLY[@]} )) && return
  [[ $cur == -* ]] && return
  if [[ $before == --session ]] || { ((words == 0)) && [[ " @SESSIONS@ " == *" $command "* ]]; }; then
    asks=(ls --ids --limit @MOST@ "${where[@]}" -- "$cur")
  elif ((words == 0)) && [[ $command == resolve ]]; then
    asks=(effects --ids "${where[@]}")
  elif ((words == 1)) && [[ " @CALLS@ " == *" $command "* ]]; then
    asks=(effects --calls --session "$first" "${where[@]}")
  else
    return
  fi
  while IFS= read -r id; do
    [[ $id == "$cur"* ]] || continue
    printf -v quoted '%q' "$id"
    COMPREPLY+=("$quoted")
  done < <(command keeve "${asks[@]}" 2>/dev/null)
}
complete -F _keeve_and_what_there_is keeve
"""

_FISH: Final = """
function __keeve_sessions
    command keeve ls --ids --limit @MOST@ 2>/dev/null
end
complete -c keeve -n '__fish_seen_subcommand_from @SESSIONS@' -f -a '(__keeve_sessions)'
complete -c keeve -l session -x -a '(__keeve_sessions)'
function __keeve_calls
    set -l words (string match -v -- '-*' (commandline -opc))
    test (count $words) -ge 3; and command keeve effects --calls --session $words[3] 2>/dev/null
end
complete -c keeve -n '__fish_seen_subcommand_from @CALLS@' -f -a '(__keeve_calls)'
complete -c keeve -n '__fish_seen_subcommand_from resolve' -f -a '(command keeve effects --ids 2>/dev/null)'
"""


def tell_completion(program: App, output: Output, shell: Shell) -> None:
    """Give the script for a shell."""
    more = {"bash": _BASH, "fish": _FISH}.get(shell, "")
    lists = {"SESSIONS": SESSIONS, "CALLS": CALLS, "BEFORE": sorted(FLAGS | VALUED), "MOST": [str(MOST)]}
    for name, words in lists.items():
        more = more.replace(f"@{name}@", shlex.join(words))
    output.out.write(program.generate_completion(shell=shell).rstrip("\n") + "\n" + more)
    output.out.flush()

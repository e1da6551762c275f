"""`keeve completion`: what a shell needs to complete the words of a command, ids of sessions, effects and calls too.

The script comes of the commands themselves. It asks `keeve ls --ids` and `keeve effects` for ids: of the store or the
server that the words name, or else the environment.

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

_ZSH: Final = """
_keeve_and_what_there_is() {
  local command="" first="" word
  local -i at count=0
  local -a where asks ids
  for ((at = 2; at < CURRENT; at++)); do
    word=${words[at]}
    case $word in
      --store|--server|--token-file) where+=($word ${(Q)words[at+1]}); ((at++)) ;;
      --actors|--tools|--config) ((at++)) ;;
      -*) ;;
      *)
        if [[ -z $command ]]; then command=$word
        else ((count++)); first=${first:-${(Q)word}}; fi ;;
    esac
  done
  if [[ $PREFIX == -* ]]; then
    :
  elif [[ ${words[CURRENT-1]} == --session ]] || { ((count == 0)) && [[ " @SESSIONS@ " == *" $command "* ]] }; then
    asks=(ls --ids --limit @MOST@ $where -- "${(Q)PREFIX}")
  elif ((count == 0)) && [[ $command == resolve ]]; then
    asks=(effects --ids $where)
  elif ((count == 1)) && [[ " @CALLS@ " == *" $command "* ]]; then
    asks=(effects --calls --session "$first" $where)
  fi
  if (( $#asks )); then
    ids=("${(@f)$(command keeve $asks 2>/dev/null)}")
    ids=(${ids:#})
    compadd -a ids && return
  fi
  _cyclopts_keeve "$@"
}
if [[ $funcstack[1] == _keeve ]]; then
  _keeve_and_what_there_is "$@"
else
  compdef _keeve_and_what_there_is keeve
fi
"""

_FISH: Final = """
function __keeve_reads
    set -g __keeve_words
    set -g __keeve_where
    set -l option
    for word in (commandline -opc)[2..]
        if test -n "$option"
            contains -- $option --store --server --token-file; and set -a __keeve_where $option $word
            set option
        else if contains -- $word --store --server --token-file --actors --tools --config
            set option $word
        else if not string match -q -- '-*' $word
            set -a __keeve_words $word
        end
    end
end
function __keeve_at
    __keeve_reads
    test (count $__keeve_words) -eq $argv[1]; and contains -- $__keeve_words[1] $argv[2..]
end
function __keeve_sessions
    __keeve_reads
    command keeve ls --ids --limit @MOST@ $__keeve_where 2>/dev/null
end
function __keeve_effects
    __keeve_reads
    command keeve effects --ids $__keeve_where 2>/dev/null
end
function __keeve_calls
    __keeve_reads
    command keeve effects --calls --session $__keeve_words[2] $__keeve_where 2>/dev/null
end
complete -c keeve -n '__keeve_at 1 @SESSIONS@' -f -a '(__keeve_sessions)'
complete -c keeve -l session -x -a '(__keeve_sessions)'
complete -c keeve -n '__keeve_at 2 @CALLS@' -f -a '(__keeve_calls)'
complete -c keeve -n '__keeve_at 1 resolve' -f -a '(__keeve_effects)'
"""


def tell_completion(program: App, output: Output, shell: Shell) -> None:
    """Give the script for a shell."""
    more = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell]
    lists = {"SESSIONS": SESSIONS, "CALLS": CALLS, "BEFORE": sorted(FLAGS | VALUED), "MOST": [str(MOST)]}
    for name, words in lists.items():
        more = more.replace(f"@{name}@", shlex.join(words))
    output.out.write(program.generate_completion(shell=shell).rstrip("\n") + "\n" + more)
    output.out.flush()

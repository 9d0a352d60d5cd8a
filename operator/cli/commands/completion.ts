import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';

// The scripts call `coppice __complete`, so that candidates match the installed version.
const SCRIPTS: Record<string, string> = {
  bash: `_coppice() {
  local line current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      compopt -o default 2>/dev/null
      return
    fi
    [[ $line == "$current"* ]] && COMPREPLY+=("$line")
  done < <(coppice __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _coppice coppice`,
  zsh: `#compdef coppice
_coppice() {
  local -a found
  found=("\${(@f)$(coppice __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $found[1] == ":files" ]]; then
    _files
  else
    compadd -a found
  fi
}
compdef _coppice coppice`,
  fish: `function __coppice_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (coppice __complete -- $words[2..-1] 2>/dev/null)
  if test "$found[1]" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c coppice -f -a '(__coppice_complete)'`,
};

/** `coppice completion bash|zsh|fish`. */
export async function run({ positionals, terminal }: Context): Promise<undefined> {
  const script = SCRIPTS[positionals[0]!];
  if (script === undefined) {
    throw new UsageError(`there is no completion for "${positionals[0]}"`, 'choose bash, zsh or fish');
  }
  terminal.print(script);
}

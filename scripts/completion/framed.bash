# bash completion for framed. Commands and options are what `framed --help` lists now.

_framed_options()
{
    { framed "$1" --help || framed --help; } 2>/dev/null | grep -oE '^  (-., )?--[a-z-]+' | tr -d ' ' | tr , '\n'
}

_framed()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(framed --help | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p') --help --version"
    elif [[ $before == -c || $before == --config || $word != -* ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    else
        words=$(_framed_options "${COMP_WORDS[1]}")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _framed framed

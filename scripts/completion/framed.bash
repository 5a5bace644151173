# bash completion for framed and framed-bench: offers the commands and options that `--help` lists.

_framed_options()
{
    { "$@" --help || framed --help; } 2>/dev/null | grep -oE '^  (-., )?--[a-z-]+' | tr -d ' ' | tr , '\n'
}

_framed()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= of=(framed "${COMP_WORDS[1]}")
    [[ ${COMP_WORDS[0]} == *-bench ]] && of=(framed-bench)
    if [[ $COMP_CWORD -eq 1 && ${#of[@]} -eq 2 ]]; then
        words="$(framed --help | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p') --help --version"
    elif [[ $COMP_CWORD -eq 2 && ${of[1]} == cluster && $word != -* ]]; then
        words=$(framed cluster --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
    elif [[ $before == -c || $before == --config || $word != -* ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    else
        words=$(_framed_options "${of[@]}")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _framed framed framed-bench

# Completion of sim in bash: commands, then the options of each, as --help tells them. `make install` puts it in its
# place; by hand: . sim/completion.bash
_sim() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    if ((COMP_CWORD == 1)); then
        words="help $("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p')"
    elif [[ $word == -* ]]; then
        words=$("${COMP_WORDS[0]}" help "${COMP_WORDS[1]}" 2>/dev/null | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p')
    elif [[ ${COMP_WORDS[1]} == stack ]]; then
        words='up down status logs fetch start stop kill restart pause resume fill postgres redis store server'
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        words=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _sim sim

#compdef volfs
# Completion of volfs for zsh. The program itself knows what fits: commands, options, volumes, layers and mounts.
_volfs() {
    local kind value help
    local -a typed lines plain open described
    typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
    lines=("${(@f)$(_call_program volfs ${(q)words[1]} complete zsh -- ${(q)typed[@]} 2>/dev/null)}")
    kind=$lines[1]
    shift lines
    case $kind in
    files) _files; return ;;
    folders) _files -/; return ;;
    paths)
        # what is before the last slash stays as it was typed
        compset -P '*/'
        for value in $lines; do
            value=${value%%$'\t'*}
            case $value in
            */) value=${value%/}; open+=("${value##*/}") ;;
            *) plain+=("${value##*/}") ;;
            esac
        done
        [[ -n $open ]] && compadd -q -S / -f -a open
        [[ -n $plain ]] && compadd -f -a plain
        ;;
    words)
        for value in $lines; do
            help=${value#*$'\t'}
            value=${value%%$'\t'*}
            if [[ $value == *= ]]; then
                open+=("$value")
            else
                described+=("${value//:/\\:}:$help")
            fi
        done
        [[ -n $open ]] && compadd -S '' -a open
        [[ -n $described ]] && _describe -V volfs described
        ;;
    esac
}
if [[ $funcstack[1] == _volfs ]]; then
    _volfs "$@"
elif (( $+functions[compdef] )); then
    compdef _volfs volfs
else
    print -u2 'volfs: completion needs compinit before this line: autoload -U compinit; compinit'
fi

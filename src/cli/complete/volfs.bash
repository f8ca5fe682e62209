# Completion of volfs for bash. The program itself knows what fits: commands, options, volumes, layers and mounts.
_volfs() {
    local program=${1/#\~\//$HOME/} kind value
    COMPREPLY=()
    {
        read -r kind
        while IFS=$'\t' read -r value _; do
            [ "$kind" = words ] && printf -v value %q "$value"
            COMPREPLY+=("$value")
        done
    } < <("$program" complete bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
    paths) compopt -o filenames ;;
    files) compopt -o default ;;
    folders) compopt -o dirnames -o filenames ;;
    *) [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;
    esac
}
complete -F _volfs volfs

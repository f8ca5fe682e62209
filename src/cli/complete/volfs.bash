# Completion of volfs for bash. The program itself knows what fits: commands, options, layers, levels, axes and mounts.
_volfs() {
    local program=${1/#\~\//$HOME/} kind value
    COMPREPLY=()
    {
        read -r kind
        while IFS=$'\t' read -r value _; do
            printf -v value %q "$value"
            COMPREPLY+=("$value")
        done
    } < <("$program" complete bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
    files) compopt -o default ;;
    folders) compopt -o dirnames -o filenames ;;
    *) [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;
    esac
}
complete -F _volfs volfs

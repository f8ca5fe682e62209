# Completion of volfs for fish. The program itself knows what fits: commands, options, volumes, layers and mounts.
function __volfs_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l lines (command $words[1] complete fish -- $words[2..] "$word" 2>/dev/null)
    switch $lines[1]
        case files
            __fish_complete_path "$word"
        case folders
            __fish_complete_directories "$word"
        case '*'
            printf '%s\n' $lines[2..]
    end
end
complete --command volfs --no-files --keep-order --arguments '(__volfs_complete)'
